// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Here the test binary is the wrapper: init sees the command's name.

// wrapped makes the six names of the container run the wrapper.
func wrapped(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	host.Check(t, err)
	host.Check(t, host.LayOut(self))
}

// called is how a call ended, and what it has kept.
type called struct {
	status         int
	stdout, stderr string
	stored         string // what the switch contains
	recorded       string
}

// calls runs a command.
func calls(t *testing.T, command ...string) (c called) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%q was not started", command)
	}
	c = called{status: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	c.stored, _ = os.Readlink("/usr/sbin/" + link.Switch)
	record, _ := link.OpenRecord() // without /proc there is none
	c.recorded = string(record.Read())
	return c
}

// backend is what `iptables --version` says of itself.
func (c called) backend() string {
	switch {
	case strings.HasSuffix(c.stdout, "(nf_tables)\n"):
		return "nft"
	case strings.HasSuffix(c.stdout, "(legacy)\n"):
		return "legacy"
	}
	return ""
}

const (
	dockerInLegacy = "iptables-legacy -N DOCKER-USER"
	asUser         = "setpriv --reuid=1000 --inh-caps=+net_admin,+net_raw --ambient-caps=+net_admin,+net_raw "
	storedNFT      = "xtables-nft-multi"
	storedLegacy   = "xtables-legacy-multi"
)

// What a first call runs, and what it keeps. It prints nothing.
func TestFirstCall(t *testing.T) {
	for _, test := range []struct {
		doc, host string
		with      string // what the call is started with
		backend   string
		stored    string // "": the wrapper
		recorded  string
	}{
		{doc: "nothing", backend: "nft", recorded: "nft"},
		{doc: "a hint", host: "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", backend: "legacy",
			stored: storedLegacy, recorded: "legacy"},
		{doc: "a hint in both backends", host: `
			iptables-legacy -t mangle -N KUBE-IPTABLES-HINT
			iptables-nft -t mangle -N KUBE-IPTABLES-HINT`, backend: "nft", recorded: "nft"},
		{doc: "Docker in legacy, beside firewalld's native table",
			host: dockerInLegacy + "; nft add table inet firewalld", backend: "legacy", stored: storedLegacy,
			recorded: "legacy"},
		{doc: "kube-proxy's native table, and a stray rule in legacy", host: `
			nft 'table ip kube-proxy { chain services { counter; counter; }; }'
			iptables-legacy -A INPUT -j ACCEPT`, backend: "nft", stored: storedNFT, recorded: "nft"},
		{doc: "empty chains are no rules", host: `
			for chain in A B C; do iptables-legacy -N $chain; done
			iptables-nft -A INPUT -j ACCEPT`, backend: "nft", recorded: "nft"},
		{doc: "more rules in legacy", host: "iptables-legacy -A INPUT -j ACCEPT", backend: "legacy",
			recorded: "legacy"},
		{doc: "the machine's /dev", host: dockerInLegacy + "; rm /dev/ptmx", backend: "legacy", stored: storedLegacy},
		{doc: "a read-only /dev", host: dockerInLegacy + "; mount -o remount,bind,ro /dev", backend: "legacy",
			stored: storedLegacy},
		{doc: "a read-only root", host: dockerInLegacy + "; mount -o remount,bind,ro /usr/sbin", backend: "legacy",
			recorded: "legacy"},
		{doc: "the lock is held", host: dockerInLegacy + "; flock /usr/sbin sleep 100 >/dev/null 2>&1 & " +
			"while flock --nonblock /usr/sbin true; do sleep 0.01; done", backend: "legacy", recorded: "legacy"},
		{doc: "the variable", host: dockerInLegacy, with: "env IPTABLES_WRAPPER_BACKEND=nft ", backend: "nft"},
		{doc: "a chroot in which an image is made", host: dockerInLegacy + `
			mkdir /run/root
			mount --rbind / /run/root
			mount --rbind /usr/sbin /run/root/usr/sbin`, with: "chroot /run/root ", backend: "legacy"},
		{doc: "a Pod's network", host: "iptables-nft -N DOCKER-USER", with: "unshare --net sh -ec '" + dockerInLegacy +
			"; exec \"$@\"' - ", backend: "legacy"},
		{doc: "mounts of its own", host: dockerInLegacy, with: "unshare --mount sh -ec 'mount -t tmpfs none /mnt; " +
			"exec \"$@\"' - ", backend: "legacy"},
		{doc: "another user", host: "iptables-nft -N DOCKER-USER", with: asUser, backend: "nft"},
		{doc: "another user who may write everywhere", host: "iptables-nft -N DOCKER-USER", backend: "nft",
			with: "setpriv --reuid=1000 --inh-caps=+net_admin,+net_raw,+dac_override " +
				"--ambient-caps=+net_admin,+net_raw,+dac_override "},
		{doc: "without CAP_NET_ADMIN", with: "setpriv --bounding-set=-net_admin ", backend: "nft"},
		{doc: "links straight to the wrapper", host: dockerInLegacy + `
			ln -sf iptables-wrapper /usr/sbin/iptables
			rm /usr/sbin/iptables-current`, backend: "legacy", stored: "-"},
		{doc: "a guess without a program", host: "rm /usr/sbin/*-nft*", backend: "legacy", recorded: "legacy"},
	} {
		t.Run(test.doc, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			wrapped(t)
			host.Run(t, "sh", "-ec", test.host)
			want := called{stored: test.stored, recorded: test.recorded}
			switch test.stored {
			case "":
				want.stored = link.Wrapper
			case "-":
				want.stored = ""
			}
			c := calls(t, "sh", "-c", test.with+"/usr/sbin/iptables --version")
			want.stdout = c.stdout
			if c != want || c.backend() != test.backend {
				t.Errorf("got %+v, want %s and %+v", c, test.backend, want)
			}
		})
	}
}

// A program of an agent's process 1 has a thread in a Pod's network namespace. What a call in either finds is not kept.
func TestAgent(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	wrapped(t)
	host.Run(t, "sh", "-ec", dockerInLegacy)
	entered := make(chan error)
	left := make(chan bool)
	go host.OnThread(func() {
		entered <- unix.Unshare(unix.CLONE_NEWNET)
		<-left
	})
	host.Check(t, <-entered)
	c := calls(t, "iptables", "--version")
	if c.backend() != "legacy" || c.stored != link.Wrapper || c.recorded != "" {
		t.Errorf("got %+v", c)
	}
	close(left)
}

// What a guess has recorded stays whatever the numbers of rules become, until a name proves the other backend.
func TestLaterCalls(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	wrapped(t)
	rule := strings.Fields("INPUT -s 192.0.2.1 -j DROP")
	c := calls(t, append([]string{"iptables", "-A"}, rule...)...)
	if c.status != 0 || c.recorded != "nft" {
		t.Fatalf("got %+v", c)
	}
	for range 6 {
		host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
	}
	c = calls(t, append([]string{"iptables", "-D"}, rule...)...)
	if c.status != 0 || c.stderr != "" {
		t.Errorf("got %+v", c)
	}
	host.Run(t, "sh", "-ec", "rm /usr/sbin/*-nft*") // no other one is run for it
	c = calls(t, "iptables", "--version")
	if c.status != 127 || c.recorded != "nft" || !strings.Contains(c.stderr, "nft is in use here already") {
		t.Errorf("the recorded program is gone: got %+v", c)
	}
	host.Run(t, "sh", "-ec", dockerInLegacy)
	c = calls(t, "iptables", "--version")
	if c.backend() != "legacy" || c.recorded != "legacy" || c.stored != storedLegacy {
		t.Errorf("Docker has started: got %+v", c)
	}
}

// With few descriptors, a call runs the right backend, or ends with two lines. It never guesses. With one less than it
// takes to ask, what is recorded runs. Go's runtime itself needs some, and it keeps one or two.
func TestFewDescriptors(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	wrapped(t)
	host.Run(t, "sh", "-ec", dockerInLegacy)
	self, err := os.Executable()
	host.Check(t, err)
	var namespace unix.Stat_t
	host.Check(t, unix.Stat("/proc/self/ns/net", &namespace))
	file := fmt.Sprintf("/dev/iptables-backend-%d", namespace.Ino)
	least := func(record string) int {
		runs := 0
		for limit := 12; limit > 4; limit-- {
			_ = os.Remove(file)
			host.Check(t, host.LayOut(self))
			if record != "" {
				host.Check(t, os.Symlink(record, file))
			}
			c := calls(t, "sh", "-c", "ulimit -n $0; exec iptables --version", strconv.Itoa(limit))
			switch {
			case c.status == 0 && c.backend() == "legacy" && c.stderr == "":
				runs = limit
			case c.status == 126 && c.stdout == "" && strings.Count(c.stderr, "\n") == 2 && c.recorded == record &&
				strings.Contains(c.stderr, "raise the limit on open files"):
			default:
				t.Errorf("%d descriptors, %q is recorded: got %+v", limit, record, c)
			}
		}
		return runs
	}
	asked, recorded := least(""), least("legacy")
	if recorded >= asked || recorded < 5 {
		t.Errorf("a call needs %d descriptors, and %d where its backend is recorded", asked, recorded)
	}
}

// A first call has guessed, and before it records, another one guesses the other backend and does. Both run what is
// recorded.
func TestFasterCall(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Needs(t, "strace")
	wrapped(t)
	slow := exec.Command("strace", "-qq", "-o", "/dev/null", "-e", "trace=symlinkat", "-e",
		"inject=symlinkat:delay_enter=3600s", "iptables", "-w", "-A", "INPUT", "-s", "192.0.2.1", "-j", "ACCEPT")
	host.Check(t, slow.Start())
	held := 0
	for tries := 0; held == 0; tries++ {
		if tries > 10000 {
			t.Fatal("the slow call makes no record")
		}
		time.Sleep(time.Millisecond)
		held = inCall(t, slow.Process.Pid, unix.SYS_SYMLINKAT)
	}
	host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
	host.Run(t, "iptables", "-w", "-A", "INPUT", "-s", "192.0.2.2", "-j", "ACCEPT")
	host.Check(t, slow.Process.Kill()) // of strace: then the kernel lets the call go on
	_ = slow.Wait()
	var status unix.WaitStatus
	_, err := unix.Wait4(held, &status, 0, nil) // process 1 is the parent of those that have lost theirs
	if err != nil || status != 0 {
		t.Errorf("the slow call: %v, status %d", err, status)
	}
	if got := host.Run(t, "iptables-legacy", "-S", "INPUT"); strings.Count(got, "192.0.2.") != 2 {
		t.Errorf("legacy has %s", got)
	}
}

// inCall returns a child of a process that is in a system call, 0 if none is.
func inCall(t *testing.T, parent, call int) int {
	t.Helper()
	children := host.Read(t, fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
	for child := range strings.FieldsSeq(string(children)) {
		now, _ := os.ReadFile("/proc/" + child + "/syscall") // it may have ended
		if strings.HasPrefix(string(now), strconv.Itoa(call)+" ") {
			pid, err := strconv.Atoi(child)
			host.Check(t, err)
			return pid
		}
	}
	return 0
}
