// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// readOnly returns a path of a directory on a read-only mount that is attached nowhere: it leads through a descriptor.
func readOnly(t *testing.T, path string) string {
	t.Helper()
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		t.Cleanup(func() { _ = unix.Close(tree) })
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		host.Cannot(t, "make a read-only mount: %v; run it as root, on Linux 5.12 or newer", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", tree)
}

// Where the switch is not to be moved, a call does not take the lock, which others may hold.
func TestKeepWithoutLock(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	hint := evidence.Decision{Mode: evidence.Legacy, Reason: evidence.KubeletHint, Conclusive: true}
	guess := evidence.Decision{Mode: evidence.Legacy, Reason: evidence.Default}
	for _, test := range []struct {
		doc        string
		readOnly   bool
		remembered evidence.Decision
		decision   evidence.Decision
		want       string // what is remembered
	}{
		{doc: "read-only, kubelet", readOnly: true, decision: hint, want: "legacy kubelet-hint certain"},
		{
			doc: "read-only, kubelet confirms a guess", readOnly: true, remembered: guess, decision: hint,
			want: "legacy kubelet-hint certain",
		},
		{
			doc: "a guess is remembered", remembered: guess, decision: remembered(guess),
			want: "legacy default guess",
		},
	} {
		directory, dev := t.TempDir(), t.TempDir()
		grow(t, directory, laidTree(Wrapper)...)
		in, m := opened(t, directory), memory.In(opened(t, dev))
		if test.readOnly {
			in = opened(t, readOnly(t, directory))
		}
		if test.remembered.Mode != "" {
			host.Check(t, m.Set(test.remembered))
		}
		var steps []string
		in.Step = func(operation, _ string) { steps = append(steps, operation) }
		got := Keep(Call{
			Decision: test.decision, Remembered: test.remembered, Adds: true, Changes: true, Root: true, Own: true,
			Memory: m, Place: Place{Dir: in, Laid: true, Running: idOf(t, directory+"/iptables-wrapper")},
		})
		if got != test.decision || slices.Contains(steps, "lock") || remembers(t, dev) != test.want {
			t.Errorf("%s: got %+v; steps %q; %q is remembered", test.doc, got, steps, remembers(t, dev))
		}
	}
}

// While a certain call takes the lock, a reset forgets what it has remembered, and another call remembers a guess of
// the same backend. No guess ends in the switch.
func TestKeepReadsAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	directory, dev := t.TempDir(), t.TempDir()
	grow(t, directory, laidTree(Wrapper)...)
	in, m := opened(t, directory), memory.In(opened(t, dev))
	in.Step = func(operation, _ string) {
		if operation == "lock" {
			host.Check(t, m.Set(evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default}))
		}
	}
	d := evidence.Decision{Mode: evidence.NFT, Reason: evidence.HostProgram, Conclusive: true}
	got := Keep(Call{
		Decision: d, Adds: true, Changes: true, Root: true, Own: true, Memory: m,
		Place: Place{Dir: in, Laid: true, Running: idOf(t, directory+"/iptables-wrapper")},
	})
	content, _ := os.Readlink(directory + "/iptables-current")
	if got != d || content != Wrapper {
		t.Errorf("got %+v; the switch is at %q", got, content)
	}
}
