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

// Where the switch cannot be moved, a call does not take the lock, which others may hold, and remembers its answer.
func TestKeepReadOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	directory, dev := t.TempDir(), t.TempDir()
	grow(t, directory, laidTree(Wrapper)...)
	in := opened(t, readOnly(t, directory))
	var steps []string
	in.Step = func(operation, _ string) { steps = append(steps, operation) }
	d := evidence.Decision{Mode: evidence.Legacy, Reason: evidence.KubeletHint, Conclusive: true}
	got := Keep(Call{
		Decision: d, Root: true, Own: true, Memory: memory.In(opened(t, dev)),
		Place: Place{Command: in.Join("iptables"), Dir: in, Laid: true, Running: idOf(t, directory+"/iptables-wrapper")},
	})
	if got != d || slices.Contains(steps, "lock") || remembers(t, dev) != "legacy kubelet-hint certain" {
		t.Errorf("got %+v; steps %q; %q is remembered", got, steps, remembers(t, dev))
	}
}
