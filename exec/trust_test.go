// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A program is not taken from a directory that somebody else owns or can write, whoever asks.
func TestFindSkips(t *testing.T) {
	host.NeedsRoot(t, "give a directory away")
	const nobody, somebody = 65534, 1000
	for _, test := range []struct {
		doc         string
		user, owner int
		mode        os.FileMode
		taken       bool
	}{
		{"root's", 0, 0, 0o755, true},
		{"root's, of which others see nothing", 0, 0, 0o700, true},
		{"root's, which its group can write", 0, 0, 0o775, false},
		{"root's, which all can write", 0, 0, 0o777, false},
		{"as /tmp is", 0, 0, 0o777 | os.ModeSticky, false},
		{"another user's", 0, somebody, 0o755, false},
		{"a user's own", somebody, somebody, 0o755, true},
		{"a user's own, which all can write", somebody, somebody, 0o777, false},
		{"root's, for a user", somebody, 0, 0o755, true},
		{"another user's, for a user", somebody, nobody, 0o755, false},
	} {
		top, err := os.MkdirTemp("", "")
		host.Check(t, err)
		defer os.RemoveAll(top)
		put(t, top, "a/iptables-nft", "b/iptables-nft")
		host.Check(t, os.Mkdir(top+"/a/below", 0o755))
		host.Check(t, os.Symlink("a/below", top+"/below"))
		host.Check(t, os.Chmod(top, 0o755))
		host.Check(t, os.Chown(top+"/a", test.owner, test.owner))
		host.Check(t, os.Chmod(top+"/a", test.mode))
		host.Check(t, os.Symlink("a", top+"/link"))
		want := top + "/b/iptables-nft"
		for _, dir := range []string{top + "/a", top + "/link", top + "/below/.."} {
			if test.taken {
				want = dir + "/iptables-nft"
			}
			host.OnThread(func() {
				become(t, test.user)
				got, err := exec.Find(detect.NFT, "iptables", dir, top+"/b")
				if got.Path != want || err != nil {
					t.Errorf("%s: got %+v, %v, want %s", test.doc, got, err, want)
				}
			})
		}
	}
}

// become gives the calling thread another user.
func become(t *testing.T, user int) {
	t.Helper()
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user))
	if errno != 0 {
		t.Fatal(errno)
	}
}

// The running file, under whatever name, ends the search: two copies that pass each other over would call each other
// without end.
func TestFindItself(t *testing.T) {
	self, err := os.Executable()
	host.Check(t, err)
	for _, name := range []string{"iptables-nft", "xtables-nft-multi"} {
		top := t.TempDir()
		put(t, top, "a/other", "b/iptables-nft")
		host.Check(t, os.Symlink(self, top+"/a/"+name))
		got, err := exec.Find(detect.NFT, "iptables", top+"/a", top+"/b")
		if got != (exec.Program{}) || !errors.Is(err, exec.ErrItself) || errors.Is(err, exec.ErrMissing) ||
			err.Error() != `"`+top+"/a/"+name+`": it is the running program itself` {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		got, err = exec.Find(detect.NFT, "iptables", top+"/b", top+"/a")
		if got.Path != top+"/b/iptables-nft" || err != nil {
			t.Errorf("%s, behind a program: got %+v, %v", name, got, err)
		}
		host.Check(t, os.Chmod(top+"/a", 0o777))
		got, err = exec.Find(detect.NFT, "iptables", top+"/a", top+"/b")
		if got.Path != top+"/b/iptables-nft" || err != nil {
			t.Errorf("%s, in a directory that is skipped: got %+v, %v", name, got, err)
		}
	}
}
