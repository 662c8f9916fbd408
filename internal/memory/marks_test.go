// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// fill puts many entries into a directory.
func (f *fake) fill(dir string, entries int) {
	for i := range entries {
		f.check(os.Symlink("nft", f.real(fmt.Sprintf("%s/%d", dir, i))))
	}
}

// Of a crowd, only so much is read: somebody may have guessed. That is not asked of what is about another namespace.
func TestTooManyEntries(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.fill("/dev/shm", mostEntries-1)
	if got := f.read().Guessed(detect.NFT); got != "" {
		t.Errorf("nobody guessed: got %q", got)
	}
	f.check(os.Symlink("nft", f.real("/dev/shm/one"))) // the last one that is read
	if got := f.read().Guessed(detect.NFT); got != "" {
		t.Errorf("as many as are read: got %q", got)
	}
	f.check(os.Symlink("nft", f.real("/dev/shm/two")))
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy, ""} {
		if got := f.read().Guessed(mode); got != fmt.Sprintf("/dev/shm has more than %d entries", mostEntries) {
			t.Errorf("%q: got %q", mode, got)
		}
	}
	nowhere := Read(f.t, f.p, Container{})
	if got := nowhere.Guessed(""); got != "" {
		t.Errorf("an unknown container: got %q", got)
	}
}

// A mark stays what it was: rules that its guess wrote are still no evidence after another guess.
func TestMarkStays(t *testing.T) {
	f := newFake(t)
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		m := f.read()
		f.check(m.Make(detect.Memory{Mode: mode, Reason: detect.Default}, Unbound))
	}
	if got := f.read().Guessed(detect.NFT); got == "" {
		t.Error("the first guess is forgotten")
	}
}

// Reset removes all marks, however many there are.
func TestForgetCrowd(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for start := range mostEntries + 1 {
		about := Life{Netns: thisLife.Netns, Start: fmt.Sprint(start), Boot: thisLife.Boot}
		f.check(os.Symlink("nft", f.real("/dev/shm/"+name(f.p.UID, about))))
	}
	m := f.read()
	if got := m.Guessed(""); !strings.HasPrefix(got, "/dev/shm/"+self.WrapperName) {
		t.Errorf("before: got %q", got)
	}
	if err := m.Forget(); err != nil {
		t.Fatal(err)
	}
	if got := m.Guessed(""); got != "" {
		t.Errorf("after: got %q", got)
	}
}

// Of a directory that cannot be listed, it is not known whether somebody guessed; in one that does not exist, nobody
// did.
func TestUnlisted(t *testing.T) {
	f := newFake(t)
	f.check(os.RemoveAll(f.real("/run")))
	if got := f.read().Guessed(""); got != "" {
		t.Errorf("no /run: got %q", got)
	}
	f.check(os.WriteFile(f.real("/run"), nil, 0o644))
	if got := f.read().Guessed(""); got != "" {
		t.Errorf("a file: got %q", got)
	}
	f.check(os.Remove(f.real("/run")))
	f.check(os.Symlink("run", f.real("/run")))
	if got := f.read().Guessed(""); !strings.Contains(got, "too many levels") {
		t.Errorf("a loop: got %q", got)
	}
}

// One's own mark that cannot be replaced is no memory: the next place has that, and it can be changed and removed.
func TestMarkInTheWay(t *testing.T) {
	f := newFake(t)
	f.put("/dev/shm", f.p.UID, "nft default unbound "+life)
	full := f.t
	full.Step = func(op, path string) error {
		if op == "symlink" && strings.HasPrefix(path, "/dev/shm/") {
			return unix.ENOSPC
		}
		return nil
	}
	m := Read(full, f.p, Container{OwnNetns: detect.Yes, OwnRoot: detect.Yes, Life: thisLife})
	err := m.Make(detect.Memory{Mode: detect.Legacy, Reason: detect.Default}, Guess)
	if err != nil || m.Mode() != detect.Legacy || !strings.HasPrefix(m.Path(), "/run/") || m.OwnPath() != m.Path() {
		t.Fatalf("got %q at %q, this user's at %q, %v", m.Mode(), m.Path(), m.OwnPath(), err)
	}
	err = m.Set(detect.Memory{Mode: detect.NFT, Reason: detect.Override})
	if err != nil || m.Mode() != detect.NFT {
		t.Errorf("set: got %q, %v", m.Mode(), err)
	}
	err = m.Forget()
	if err != nil || m.Mode() != "" || m.OwnPath() != "" {
		t.Errorf("forget: %v, %q at %q", err, m.Mode(), m.OwnPath())
	}
}

// One's own mark is not taken for root's memory, so an answer can be set where the mark is or, if that cannot be
// replaced, in the next place.
func TestSetOverMark(t *testing.T) {
	for wanted, refused := range map[string]error{"/dev/shm/": nil, "/run/": unix.EROFS} {
		f := newFake(t)
		f.put("/dev/shm", f.p.UID, "nft default unbound "+life)
		shm := f.t
		shm.Step = func(_, path string) error {
			if strings.HasPrefix(path, "/dev/shm/") {
				return refused
			}
			return nil
		}
		m := Read(shm, f.p, Container{OwnNetns: detect.Yes, OwnRoot: detect.Yes, Life: thisLife})
		err := m.Set(detect.Memory{Mode: detect.Legacy, Reason: detect.Override})
		if err != nil || m.Mode() != detect.Legacy || !strings.HasPrefix(m.Path(), wanted) {
			t.Errorf("got %q at %q, %v, want legacy in %s", m.Mode(), m.Path(), err, wanted)
		}
	}
}
