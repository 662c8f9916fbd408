// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// What is remembered changes with its reason and its certainty, also where the backend stays the same; otherwise
// nothing is written.
func TestSet(t *testing.T) {
	before := detect.Memory{Mode: detect.NFT, Reason: detect.RuleCount, Because: "before"}
	for doc, change := range map[string]func(r *detect.Memory){
		"the backend":   func(r *detect.Memory) { r.Mode = detect.Legacy },
		"the reason":    func(r *detect.Memory) { r.Reason = detect.Override },
		"the certainty": func(r *detect.Memory) { r.Conclusive = true },
		"":              func(r *detect.Memory) { r.Because = "in other words" },
	} {
		f := newFake(t)
		m := f.read()
		f.check(m.Make(before, Guess))
		want := before
		change(&want)
		f.check(m.Set(want))
		if doc == "" {
			want = before
		}
		again := f.read()
		got := again.Remembered()
		got.Since = want.Since
		if got != want {
			t.Errorf("%s: got %+v, want %+v", doc, got, want)
		}
	}
}

// Another user makes a directory of the name as soon as the memory is gone.
func TestForgetBesideDirectory(t *testing.T) {
	f := newFake(t)
	f.p.UID = os.Geteuid()
	path := f.put("/dev/shm", f.p.UID, "nft rule-count certain "+life)
	m := f.read()
	f.check(os.Remove(f.real(path)))
	f.check(os.Mkdir(f.real(path), 0o755))
	f.check(m.Forget())
	if m.Mode() != "" {
		t.Errorf("got %s", m.Mode())
	}
}

// Whoever has memories in several places, by whatever way they got there, forgets them all.
func TestForgetAll(t *testing.T) {
	f := newFake(t)
	f.p.UID = os.Geteuid()
	first := f.put("/dev/shm", f.p.UID, "nft rule-count certain "+life)
	second := f.put("/run", f.p.UID, "legacy rule-count certain "+life)
	m := f.read()
	if m.Path() != first {
		t.Errorf("got %q", m.Path())
	}
	f.check(m.Forget())
	for _, path := range []string{first, second} {
		_, err := os.Lstat(f.real(path))
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What another user has put under one's name gives way, and may have gone by then, or be back.
func TestComesAndGoes(t *testing.T) {
	needRoot(t)
	for _, times := range []int{0, 1, 5, 100} { // how often it is back
		f := newFake(t)
		path := f.put("/dev/shm", f.p.UID, "legacy")
		f.check(os.Lchown(f.real(path), 1000, 0))
		back := 0
		f.t.Step = func(op, at string) error {
			switch {
			case op == "exchange":
				f.check(os.Remove(f.real(path)))
			case op == "symlink" && at == path && back > 0 && back <= times:
				f.check(os.Symlink("legacy", f.real(path)))
				f.check(os.Lchown(f.real(path), 1000, 0))
			}
			if op == "symlink" && at == path {
				back++
			}
			return nil
		}
		m := f.read()
		err := m.Make(detect.Memory{Mode: detect.NFT, Reason: detect.Default}, Guess)
		where := "/dev/shm/"
		if times == 100 {
			where = "/run/"
		}
		if err != nil || !strings.HasPrefix(m.Path(), where+self.WrapperName) {
			t.Errorf("%d times: at %q, %v", times, m.Path(), err)
		}
		left, err := filepath.Glob(f.real("/dev/shm/.*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%d times: left %q, %v", times, left, err)
		}
	}
}

// Another user does not write what root's memory outranks. What kubelet says outranks root's.
func TestSetBesideRoots(t *testing.T) {
	needRoot(t)
	for _, test := range []struct {
		doc     string
		answer  detect.Memory
		written bool
	}{
		{"another backend", detect.Memory{Mode: detect.Legacy, Reason: detect.Override}, false},
		{"another backend, certain", detect.Memory{Mode: detect.Legacy, Reason: detect.RuleCount, Conclusive: true},
			false},
		{"the same backend", detect.Memory{Mode: detect.NFT, Reason: detect.Override}, true},
		{"kubelet", detect.Memory{Mode: detect.Legacy, Reason: detect.KubeletHint, Conclusive: true}, true},
		{"kubelet, a guess", detect.Memory{Mode: detect.Legacy, Reason: detect.KubeletHint}, false},
	} {
		f := newFake(t)
		f.p.UID = 1000
		f.check(os.Chmod(f.real("/dev/shm"), 0o777|os.ModeSticky))
		f.put("/dev/shm", 0, "nft rule-count certain "+life)
		m := f.read()
		err := m.Set(test.answer)
		if !test.written && !errors.Is(err, ErrRoots) {
			t.Errorf("%s: got %v", test.doc, err)
		}
		_, err = os.Lstat(f.real("/dev/shm/" + name(1000, thisLife)))
		if written := err == nil; written != test.written {
			t.Errorf("%s: written: %v", test.doc, written)
		}
	}
}

// A link with a second name may have been made under that one, for another purpose. It is not believed, and a link of
// its own takes its place; reset removes it.
func TestHardLink(t *testing.T) {
	f := newFake(t)
	f.p.UID = os.Geteuid()
	dir := Dirs(f.p.UID)[len(Dirs(f.p.UID))-2]
	path := f.put(dir, f.p.UID, "legacy kubelet-hint certain "+life)
	f.check(os.Link(f.real(path), f.real(dir+"/other")))
	m := f.read()
	if m.Mode() != "" || m.Guessed(detect.Legacy) != path {
		t.Errorf("it is believed: %+v, marks: %q", m.Remembered(), m.Guessed(detect.Legacy))
	}
	m.forgetMarks()
	_, err := os.Lstat(f.real(path))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("forget: %v", err)
	}
	f.check(os.Link(f.real(dir+"/other"), f.real(path)))
	m = f.read()
	f.check(m.Make(detect.Memory{Mode: detect.NFT}, Guess))
	if m.Mode() != detect.NFT || m.Path() != path {
		t.Errorf("make: %+v at %q", m.Remembered(), m.Path())
	}
}
