// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each condition of a container's own /dev.
func TestIsContainers(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	link := func(directory string) error { return os.Symlink("pts/ptmx", directory+"/ptmx") }
	for _, test := range []struct {
		doc, options string
		make         func(directory string) error
		want         bool
	}{
		{doc: "as runtimes make it", options: "mode=755", make: link, want: true},
		{doc: "no ptmx", options: "mode=755", make: func(string) error { return nil }},
		{doc: "ptmx is a device, as on a host", options: "mode=755", make: func(directory string) error {
			return unix.Mknod(directory+"/ptmx", unix.S_IFCHR|0o666, int(unix.Mkdev(5, 2)))
		}},
		{doc: "ptmx is a device that was mounted there", options: "mode=755", make: func(directory string) error {
			return errors.Join(os.WriteFile(directory+"/ptmx", nil, 0o666),
				unix.Mount("/dev/pts/ptmx", directory+"/ptmx", "", unix.MS_BIND, ""))
		}},
		{doc: "writable by all", options: "mode=1777", make: link},
		{doc: "writable by the group", options: "mode=775", make: link},
		{doc: "another user's", options: "mode=755,uid=1000", make: link},
	} {
		directory := t.TempDir()
		host.Check(t, unix.Mount("none", directory, "tmpfs", 0, test.options))
		host.Check(t, test.make(directory))
		if got := isContainersAt(t, directory); got != test.want {
			t.Errorf("%s: got %t", test.doc, got)
		}
		host.Check(t, unix.Unmount(directory, unix.MNT_DETACH))
	}
	host.Check(t, link("/usr/sbin"))
	if isContainersAt(t, "/usr/sbin") {
		t.Error("no tmpfs, and it is a container's own")
	}
}

func isContainersAt(t *testing.T, path string) bool {
	t.Helper()
	d, err := dir.Open(path)
	host.Check(t, err)
	defer d.Close()
	return isContainers(d)
}

// The container's /dev, otherwise beside the switch, if that is known.
func TestFind(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	beside, err := dir.Open("/usr/sbin")
	host.Check(t, err)
	defer beside.Close()
	for _, d := range []*dir.Dir{beside, nil} {
		if got := Find(d).Path(); got != "/dev/iptables-memory" {
			t.Errorf("a container's own /dev: got %q", got)
		}
	}
	host.Check(t, os.Remove("/dev/ptmx"))
	if got := Find(beside).Path(); got != "/usr/sbin/iptables-memory" {
		t.Errorf("the host's /dev: got %q", got)
	}
	if got := Find(nil); got.Dir != nil || got.Path() != "" {
		t.Errorf("the host's /dev, and no switch: got %q", got.Path())
	}
	host.Check(t, unix.Mount("none", "/proc", "tmpfs", 0, ""))
	if got := Find(beside); got.Dir != nil {
		t.Errorf("no /proc, so no network namespace: got %q", got.Path())
	}
	host.Check(t, unix.Unmount("/proc", 0))
}

// Process 1 must be known to share the root and the network namespace.
func TestOfContainer(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	if !OfContainer() {
		t.Error("process 1 is this one, and it is not of the container")
	}
	inThread := func(doc string, enter func() error) {
		host.OnThread(func() {
			err := enter()
			if err != nil {
				t.Error(err)
			}
			if OfContainer() {
				t.Errorf("%s: it is of the container", doc)
			}
		})
	}
	inThread("another network namespace", func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	root := t.TempDir()
	host.Check(t, os.Mkdir(root+"/proc", 0o755))
	host.Check(t, unix.Mount("/proc", root+"/proc", "", unix.MS_BIND, ""))
	inThread("another root", func() error { return errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chroot(root)) })
	host.Check(t, unix.Unmount(root+"/proc", unix.MNT_DETACH))
	host.Check(t, unix.Mount("none", "/proc", "tmpfs", 0, ""))
	if OfContainer() {
		t.Error("process 1 cannot be seen, and it is of the container")
	}
	host.Check(t, unix.Unmount("/proc", 0))
}
