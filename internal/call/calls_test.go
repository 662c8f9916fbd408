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

func TestMain(m *testing.M) { host.MainOfPackage(m) }

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

// The program's file has a capability that the container lacks.
func TestFileCapabilities(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Needs(t, "setcap")
	wrapped(t)
	host.Run(t, "setcap", "cap_net_admin,cap_net_raw+ep", "/usr/sbin/xtables-nft-multi")
	c := calls(t, "setpriv", "--bounding-set=-net_raw", "iptables", "-S")
	if c.status != 126 || !strings.Contains(c.stderr, "xtables-nft-multi: operation not permitted") &&
		!strings.Contains(c.stderr, "iptables-nft: operation not permitted") || strings.Count(c.stderr, "\n") != 2 {
		t.Errorf("got %+v", c)
	}
}
