// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

const life = "7.4711.0badcafe"

var thisLife = Life{Netns: "7", Start: "4711", Boot: "0badcafe"}

// fake is a file system with the places for a memory, in which the user of this test is root or another one.
type fake struct {
	*testing.T
	root string
	t    tree.Tree
	p    self.Process
}

func newFake(t *testing.T) *fake {
	f := &fake{T: t, root: t.TempDir(), p: self.Process{UID: os.Geteuid()}}
	for _, dir := range []string{"dev/shm", "run"} {
		f.check(os.MkdirAll(f.real(dir), 0o755))
	}
	var err error
	f.t, err = tree.Open(f.root)
	f.check(err)
	return f
}

func (f *fake) real(path string) string { return filepath.Join(f.root, path) }

// ownDev makes /dev the container's own.
func (f *fake) ownDev() { f.check(os.Symlink("pts/ptmx", f.real("dev/ptmx"))) }

func (f *fake) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// put makes a memory of a user, which needs root.
func (f *fake) put(dir string, uid int, target string) string {
	f.Helper()
	path := fmt.Sprintf("%s/%s.%d.%s", dir, self.WrapperName, uid, life)
	f.check(os.Symlink(target, f.real(path)))
	f.check(os.Lchown(f.real(path), uid, 0))
	return path
}

func (f *fake) read() Memory {
	return Read(f.t, f.p, Container{OwnNetns: detect.Yes, OwnRoot: detect.Yes, Life: thisLife})
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("not root")
		}
		t.Skip("not root")
	}
}

// Kubelet's chains first, then root, then the user; and nothing that another user wrote.
func TestWhoBelievesWhat(t *testing.T) {
	needRoot(t)
	const user, other = 1000, 1001
	for _, test := range []struct {
		doc  string
		uid  int
		put  map[int]string // by owner, in /dev/shm
		want detect.Mode
	}{
		{"root's own", 0, map[int]string{0: "nft"}, "nft"},
		{"root believes nobody else", 0, map[int]string{user: "nft kubelet-hint certain " + life}, ""},
		{"a user believes root", user, map[int]string{0: "nft", user: "legacy"}, "nft"},
		{"a user's own", user, map[int]string{user: "legacy"}, "legacy"},
		{
			"what a user heard from kubelet", user,
			map[int]string{0: "nft", user: "legacy kubelet-canary certain " + life}, "legacy",
		},
		{"a guess by kubelet's chains", user, map[int]string{0: "nft", user: "legacy kubelet-hint guess " + life},
			"nft"},
		{
			"kubelet by both", user,
			map[int]string{0: "nft kubelet-hint certain " + life, user: "legacy kubelet-hint certain " + life}, "nft",
		},
		{"root was blind", user, map[int]string{0: "nft default blind " + life}, ""},
		{
			"root was blind, and the user was not", user,
			map[int]string{0: "nft default blind " + life, user: "legacy"}, "legacy",
		},
		{"root was blind, root believes it", 0, map[int]string{0: "nft default blind " + life}, "nft"},
		{"nobody believes a mark", user, map[int]string{user: "nft default unbound " + life}, ""},
		{"another user", user, map[int]string{other: "nft"}, ""},
	} {
		f := newFake(t)
		f.p.UID = test.uid
		for uid, target := range test.put {
			f.put("/dev/shm", uid, target)
		}
		if m := f.read(); m.Mode() != test.want || (m.Path() == "") != (test.want == "") {
			t.Errorf("%s: got %q, at %q", test.doc, m.Mode(), m.Path())
		}
	}
}

// A link under the user's name that belongs to somebody else is passed over, and so is a directory in which anybody
// could have put it.
func TestPlaces(t *testing.T) {
	needRoot(t)
	f := newFake(t)
	path := f.put("/dev/shm", 0, "nft")
	f.check(os.Lchown(f.real(path), 1000, 0))
	if m := f.read(); m.Mode() != "" {
		t.Errorf("another user's link: got %q", m.Mode())
	}
	f.check(os.Lchown(f.real(path), 0, 0))
	for mode, want := range map[os.FileMode]detect.Mode{
		0o777: "", 0o777 | os.ModeSticky: "nft", 0o755: "nft", 0o775: "", 0o700: "nft",
	} {
		f.check(os.Chmod(f.real("/dev/shm"), mode))
		if m := f.read(); m.Mode() != want {
			t.Errorf("%v: got %q, want %q", mode, m.Mode(), want)
		}
	}
	f.check(os.Chmod(f.real("/dev/shm"), 0o777))
	next := f.put("/run", 0, "legacy")
	if m := f.read(); m.Mode() != detect.Legacy || m.OwnPath() != m.Path() {
		t.Errorf("the next directory: got %q, its own at %q", m.Mode(), m.OwnPath())
	}
	f.check(os.Remove(f.real(next)))
	f.check(os.Chmod(f.real("/dev/shm"), 0o755))
	if m := f.read(); m.Mode() != detect.NFT {
		t.Errorf("root's directory: got %q", m.Mode())
	}
	f.check(os.Chown(f.real("/dev/shm"), 1000, 0))
	if m := f.read(); m.Mode() != "" {
		t.Errorf("another user's directory: got %q", m.Mode())
	}
	f.p.UID = 1000
	f.check(os.Lchown(f.real(f.put("/dev/shm", 1000, "nft")), 1000, 0))
	if m := f.read(); m.Mode() != detect.NFT {
		t.Errorf("one's own directory: got %q", m.Mode())
	}
}

// Root's memory is in the container's own /dev, never in the host's, in which ptmx is a device. Other users have no
// business there.
func TestDev(t *testing.T) {
	needRoot(t)
	answer := detect.Memory{Mode: detect.NFT, Reason: detect.Default}
	for _, test := range []struct {
		doc    string
		uid    int
		change func(f *fake)
		want   string
	}{
		{"root", 0, func(*fake) {}, "/dev/"},
		{"root, the host's", 0, func(f *fake) {
			f.check(os.Remove(f.real("/dev/ptmx")))
			f.check(unix.Mknod(f.real("/dev/ptmx"), unix.S_IFCHR|0o666, int(unix.Mkdev(5, 2))))
		}, "/dev/shm/"},
		{"root, one that others can write", 0, func(f *fake) {
			f.check(os.Chmod(f.real("/dev"), 0o777|os.ModeSticky))
		}, "/dev/shm/"},
		{"root, no /dev/shm", 0, func(f *fake) {
			f.check(os.Remove(f.real("/dev/ptmx")))
			f.check(os.Remove(f.real("/dev/shm")))
		}, "/run/"},
	} {
		f := newFake(t)
		f.p.UID = test.uid
		f.ownDev()
		test.change(f)
		m := f.read()
		if err := m.Make(answer, Guess); err != nil || !strings.HasPrefix(m.Path(), test.want+self.WrapperName) {
			t.Errorf("%s: at %q, %v", test.doc, m.Path(), err)
		}
		if again := f.read(); again.Mode() != detect.NFT {
			t.Errorf("%s: then %q", test.doc, again.Mode())
		}
	}
}

// Set-user-ID, the memory is not even read.
func TestNotForSetUserID(t *testing.T) {
	f := newFake(t)
	f.check(os.Symlink("nft", f.real(fmt.Sprintf("/dev/shm/%s.%d.%s", self.WrapperName, f.p.UID, life))))
	f.p.SetID = true
	if m := f.read(); m.Mode() != "" || m.Make(detect.Memory{Mode: detect.NFT}, Guess) == nil {
		t.Error("it is believed")
	}
}
