// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A wrapped call of the real program makes the system calls on the switch, the memory, their temporary links and the
// lock that are steps of the explored one, and no other.
func TestEverySystemCallIsAStep(t *testing.T) {
	d := newDisk(t)
	m := newMachine(d, setting{dev: true})
	defer m.stop()
	for _, tool := range []string{"strace", "iptables-nft", "mount"} {
		_, err := exec.LookPath(tool)
		if err != nil {
			host.Cannot(t, "run %s: it is not installed", tool)
		}
	}
	top := t.TempDir()
	wrapper := top + "/" + Wrapper
	built := os.Getenv(host.WrapperVariable)
	if built == "" {
		host.Run(t, "go", "build", "-o", wrapper, "../..")
	} else {
		host.Check(t, os.WriteFile(wrapper, host.Read(t, built), 0o755))
	}
	for _, test := range []struct {
		doc, before string
		kernel      kernel
		laid        bool
	}{
		{"a guess", ":", kernel{}, true},
		{"a count", "iptables-nft -A INPUT -j ACCEPT", kernel{rules: nft}, true},
		{"kubelet's word", "iptables-nft -t mangle -N KUBE-IPTABLES-HINT", kernel{kubelet: nft}, true},
		{"kubelet's word, copied", "iptables-nft -t mangle -N KUBE-IPTABLES-HINT", kernel{kubelet: nft}, false},
	} {
		want := m.steps(test.laid, test.kernel)
		got := traced(t, wrapper, test.before, test.laid)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", test.doc, got, want)
		}
	}
}

// steps are those of a call that is alone.
func (m *machine) steps(laid bool, k kernel) (all []string) {
	now := state{content: m.number(m.disk.laid(laid)), kernel: k, owner: noOwner, actors: nobody}
	now.actors[0] = m.start(callNFT)
	for m.moments[now.actors[0]].step != "" {
		operation, name, _ := strings.Cut(m.moments[now.actors[0]].step, " ")
		plain := strings.TrimSuffix(name, ".new")
		if operation == "lock" || plain == Switch || plain == memory.Name {
			all = append(all, strings.TrimSpace(operation+" "+name))
		}
		now, _ = m.take(now, 0)
	}
	return all
}

// container makes namespaces in which process 1, its /dev and its network are the container's own.
const container = `
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /dev
ln -s pts/ptmx /dev/ptmx
eval "$1"
exec strace -f -qq -e trace=file,flock -o "$2/trace" "$2/iptables" -A INPUT -j ACCEPT
`

// traced runs a call, and returns the system calls that count in the words of package dir.
func traced(t *testing.T, wrapper, before string, laid bool) (steps []string) {
	t.Helper()
	dir := t.TempDir()
	content, err := os.ReadFile("/bin/true")
	host.Check(t, err)
	host.Check(t, os.WriteFile(dir+"/xtables-nft-multi", content, 0o755))
	switch {
	case laid:
		host.Check(t, os.Link(wrapper, dir+"/"+Wrapper))
		host.Check(t, os.Symlink(Wrapper, dir+"/"+Switch))
		host.Check(t, os.Symlink(Switch, dir+"/iptables"))
	default:
		host.Check(t, os.Link(wrapper, dir+"/iptables"))
	}
	cmd := exec.Command("sh", "-ec", container, "sh", before, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		Unshareflags: unix.CLONE_NEWNS, // its mounts are not propagated
	}
	host.Output(t, cmd)
	for line := range strings.Lines(string(host.Read(t, dir+"/trace"))) {
		step := stepOf(line)
		if step != "" {
			steps = append(steps, step)
		}
	}
	return steps
}

var (
	systemCall = regexp.MustCompile(`^\d+ +(\w+)\((.*)`)
	quotation  = regexp.MustCompile(`"([^"]*)"`)
)

// stepOf returns the step that a line of strace stands for, "" for one that does not count.
func stepOf(line string) string {
	call := systemCall.FindStringSubmatch(line)
	if call == nil {
		return ""
	}
	operation, arguments := strings.TrimSuffix(call[1], "at"), call[2]
	if operation == "flock" {
		return "lock"
	}
	quoted := quotation.FindAllStringSubmatch(arguments, -1)
	if quoted == nil {
		return ""
	}
	name := filepath.Base(quoted[len(quoted)-1][1])
	switch {
	case operation == "readlink":
		name = filepath.Base(quoted[0][1]) // the last one is what it has read
	case operation == "newfstat" && strings.Contains(arguments, "AT_SYMLINK_NOFOLLOW"):
		operation = "lstat"
	}
	plain := strings.TrimSuffix(name, ".new")
	if plain != Switch && plain != memory.Name {
		return ""
	}
	return operation + " " + name
}
