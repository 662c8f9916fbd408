// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

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

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// process1 stands for the question whether this is process 1's container, which no other process can change.
const process1 = "process 1"

// A wrapped call of the real program makes the system calls on the links and the lock that are steps of the explored
// call, in this order, and no others.
func TestEverySystemCallIsAStep(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	for _, tool := range []string{"strace", "iptables-nft", "iptables-legacy", "mount"} {
		_, err := exec.LookPath(tool)
		if err != nil {
			host.Cannot(t, "run %s: it is not installed", tool)
		}
	}
	m := newMachine(newDisk(t), setting{record: true})
	defer m.stop()
	for _, test := range []struct {
		doc, before string
		kernel      kernel
		laid        bool
		recorded    detect.Backend
		stored      bool // the switch is changed, so that the trace cannot be empty unnoticed
	}{
		{doc: "a guess", before: ":", laid: true},
		{doc: "a guess, and a record", before: ":", laid: true, recorded: detect.NFT},
		{
			doc: "a program's name", before: "iptables-nft -N DOCKER-USER", kernel: kernel{program: nft}, laid: true,
			stored: true,
		},
		{
			doc:    "kubelet's hint, and a record of the other backend",
			before: "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
			kernel: kernel{hint: nft}, laid: true, recorded: detect.Legacy, stored: true,
		},
		{
			doc:    "the hint in both",
			before: "iptables-nft -t mangle -N KUBE-IPTABLES-HINT; iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
			kernel: kernel{hint: both}, laid: true,
		},
		{doc: "a copy, and a guess", before: ":"},
		{
			doc: "a copy, and kubelet's hint", before: "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
			kernel: kernel{hint: nft}, stored: true,
		},
	} {
		before := laid(test.laid)
		before[slot(aRecord)] = string(test.recorded)
		want := m.steps(before, test.kernel)
		first := slices.IndexFunc(want, changing)
		if first >= 0 {
			want = slices.Insert(want, first, process1) // is asked last, and only if something would be changed
		}
		got := traced(t, before, test.before)
		if !slices.Equal(got, want) || slices.Contains(got, "rename iptables-current") != test.stored {
			t.Errorf("%s:\n got %q\nwant %q", test.doc, got, want)
		}
	}
}

// steps are those of a call that is alone, in the words of stepOf.
func (m *machine) steps(before content, k kernel) (all []string) {
	now := state{content: m.number(before), kernel: k, owner: noOwner, actors: nobody}
	now.actors[0] = m.start(callNFT)
	for m.moments[now.actors[0]].step != "" {
		operation, name, _ := strings.Cut(m.moments[now.actors[0]].step, " ")
		switch operation {
		case "lock":
			all = append(all, "lock")
		case "here":
			all = append(all, "lstat "+name)
		case "ask", "become":
		default:
			all = append(all, operation+" "+slotName(slot(name)))
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
[ -z "$3" ] || ln -s "$3" /dev/iptables-backend-$(stat -L -c %i /proc/self/ns/net)
exec strace -f -qq -e trace=file,flock -o "$2.trace" "$2/iptables" -A INPUT -j ACCEPT
`

// traced runs a call, and returns the steps of its system calls.
func traced(t *testing.T, before content, prepare string) (steps []string) {
	t.Helper()
	dir := t.TempDir()
	file := dir + ".wrapper"
	host.Check(t, os.WriteFile(dir+"/xtables-nft-multi", host.Read(t, "/bin/true"), 0o755))
	host.PutWrapper(t, file)
	for i, target := range before {
		path := dir + "/" + slotName(i)
		switch {
		case target == "", slotName(i) == aRecord:
		case target == asFile:
			host.Check(t, os.Link(file, path))
		default:
			host.Check(t, os.Symlink(target, path))
		}
	}
	cmd := exec.Command("sh", "-ec", container, "sh", prepare, dir, before.get(aRecord))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		Unshareflags: unix.CLONE_NEWNS, // its mounts are not propagated
	}
	host.Output(t, cmd)
	for line := range strings.Lines(string(host.Read(t, dir+".trace"))) {
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

// stepOf returns the step that a line of strace stands for, "" for one that is about no name that can change.
func stepOf(line string) string {
	call := systemCall.FindStringSubmatch(line)
	if call == nil {
		return ""
	}
	operation, arguments := strings.TrimSuffix(strings.TrimSuffix(call[1], "2"), "at"), call[2]
	if operation == "flock" {
		return "lock"
	}
	quoted := quotation.FindAllStringSubmatch(arguments, -1)
	if quoted == nil {
		return ""
	}
	name := quoted[len(quoted)-1][1]
	switch {
	case operation == "execve", operation == "readlink":
		name = quoted[0][1] // the others are the arguments, and what was read
	case operation == "newfstat" && strings.Contains(arguments, "AT_SYMLINK_NOFOLLOW"):
		operation = "lstat"
	case operation == "newfstat":
		operation = "stat"
	}
	if name == "/proc/1/mountinfo" {
		return process1
	}
	i := slot(filepath.Base(name))
	if i < 0 {
		return ""
	}
	return operation + " " + slotName(i)
}
