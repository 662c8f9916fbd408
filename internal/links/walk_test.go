// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// walk finds what openat2(2) finds, and fails as it fails.
func TestWalk(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	for _, d := range []string{"usr/sbin", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"root/usr/sbin/program", "outside", "root/outside"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{
		"sbin": "usr/sbin", "absolute": "/usr/sbin", "up": "../../../..", "usr/sbin/link": "program", "usr/sbin/escape": "../../../../outside",
		"etc/escape": "/../outside", "etc/broken": "nothing", "etc/loop": "loop", "etc/slash": "/usr/sbin/", "etc/file-slash": "/outside/", "etc/chain0": "/usr",
	}
	for i := range maxLinks {
		links[fmt.Sprintf("etc/chain%d", i+1)] = fmt.Sprintf("chain%d", i)
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := OpenTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	identity := func(fd int, err error) string {
		if err != nil {
			return err.Error()
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	before := descriptors(t)
	paths := []string{"/", ".", "..", "/..", "/usr//sbin/./program", "/usr/../outside", "/outside/", "/outside/x", "/nothing", "/nothing/", "/nothing/x"}
	for name := range links {
		paths = append(paths, "/"+name, name+"/", "/"+name+"/..", "/"+name+"/program", "/"+name+"/../outside")
	}
	for _, path := range paths {
		for _, flags := range []int{unix.O_PATH, unix.O_PATH | unix.O_NOFOLLOW, unix.O_PATH | unix.O_DIRECTORY, unix.O_RDONLY} {
			how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
			want, err := unix.Openat2(tree.root, path, &how)
			// Something was renamed or mounted on this machine: the kernel gives up, or starts again and counts the links twice.
			for tries := 0; errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ELOOP) && tries < 100; tries++ {
				want, err = unix.Openat2(tree.root, path, &how)
			}
			if errors.Is(err, unix.ENOSYS) {
				host.Cannot(t, "compare: this kernel has no openat2")
			}
			expected := identity(want, err)
			if got := identity(tree.walk(path, flags)); got != expected {
				t.Errorf("%s, flags %#x: got %s, want %s", path, flags, got, expected)
			}
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, and were %d", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
