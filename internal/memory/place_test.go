// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"golang.org/x/sys/unix"
)

// What stands in the way of a memory is left alone, and the next place has it.
func TestInTheWay(t *testing.T) {
	for doc, put := range map[string]func(path string) error{
		"a file":           func(path string) error { return os.WriteFile(path, []byte("nft"), 0o644) },
		"a directory":      func(path string) error { return os.Mkdir(path, 0o755) },
		"a FIFO":           func(path string) error { return unix.Mkfifo(path, 0o644) },
		"another target":   func(path string) error { return os.Symlink("NFT", path) },
		"4,095 characters": func(path string) error { return os.Symlink(strings.Repeat("n", 4095), path) },
	} {
		f := newFake(t)
		f.check(os.Remove(f.real("/dev/ptmx")))
		path := f.real(fmt.Sprintf("/dev/shm/%s.%d.%s", self.WrapperName, f.p.UID, life))
		f.check(put(path))
		before, err := os.Lstat(path)
		f.check(err)
		m := f.read()
		if err := m.Make(detect.Memory{Mode: detect.Legacy}, false); err != nil || !strings.HasPrefix(m.Path(), "/run/") {
			t.Errorf("%s: at %q, %v", doc, m.Path(), err)
		}
		if err := m.Forget(); err != nil || m.Mode() != "" {
			t.Errorf("%s: forget: %v, %q", doc, err, m.Mode())
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: what was there is gone: %v", doc, err)
		}
	}
}

// A guess by anybody in this network namespace is seen, in whatever life of a container; one in another namespace is none.
func TestGuessed(t *testing.T) {
	needRoot(t)
	for name, want := range map[string]bool{
		"iptables-wrapper.1000." + life: true, "iptables-wrapper.1000.7.99.0badcafe": true,
		"iptables-wrapper.1000.8.4711.0badcafe": false, "iptables-wrapper.1000.7.4711.other": false, "iptables-wrapper": false, "7." + life: false,
	} {
		for target, guess := range map[string]bool{"nft": true, "nft default blind L": true, "nft default unbound L": true, "legacy": false, "nft rule-count certain L": false} {
			f := newFake(t)
			_, its, _ := strings.Cut(strings.TrimPrefix(name, "iptables-wrapper."), ".")
			f.check(os.Symlink(strings.Replace(target, "L", its, 1), f.real("/dev/shm/"+name)))
			if got := f.read().guessed(detect.NFT); got != (want && guess) {
				t.Errorf("%s -> %s: got %v", name, target, got)
			}
		}
	}
}

// A guess that does not hold is replaced; root's cannot be, so another user passes it over.
func TestRenew(t *testing.T) {
	needRoot(t)
	f := newFake(t)
	f.p.UID = 1000
	f.check(os.Chmod(f.real("/dev/shm"), 0o777|os.ModeSticky))
	f.put("/dev/shm", 0, "nft")
	m := f.read()
	if m.Renew(); m.Mode() != "" {
		t.Fatalf("still %q", m.Mode())
	}
	_ = m.Make(detect.Memory{Mode: detect.Legacy}, false) // the test is root, so the link is root's as well
	if m.Refresh(); m.Mode() == detect.NFT {
		t.Error("root's guess is back")
	}
	f = newFake(t)
	path := f.put("/dev/shm", 0, "nft")
	m = f.read()
	m.Renew()
	if _, err := os.Lstat(f.real(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its own is still there: %v", err)
	}
}
