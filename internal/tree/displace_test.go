// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func anything(unix.Stat_t) bool { return true }

// Whatever stands in the way goes, in this process' own tree and in another one. A directory that is not empty is
// left under another name.
func TestDisplace(t *testing.T) {
	for doc, put := range map[string]func(path string) error{
		"a link":               func(path string) error { return os.Symlink("x", path) },
		"a file":               func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"a directory":          func(path string) error { return os.Mkdir(path, 0o755) },
		"a directory, in use":  func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o755) },
		"a FIFO":               func(path string) error { return unix.Mkfifo(path, 0o644) },
		"a link to its parent": func(path string) error { return os.Symlink(".", path) },
	} {
		dir := t.TempDir()
		other, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for path, in := range map[string]Tree{filepath.Join(dir, "own"): {}, "/other": other} {
			real := filepath.Join(dir, filepath.Base(path))
			if err := errors.Join(put(real), in.Displace(path, "here", anything)); err != nil {
				t.Fatalf("%s, %s: %v", doc, path, err)
			}
			if target, err := os.Readlink(real); target != "here" {
				t.Errorf("%s, %s: %q, %v", doc, path, target, err)
			}
		}
		left, err := filepath.Glob(filepath.Join(dir, ".*"))
		if inUse := strings.HasSuffix(doc, "in use"); err != nil || (len(left) > 0) != inUse {
			t.Errorf("%s: %q, %v", doc, left, err)
		}
	}
}

// What must not go is back in its place, also if it has just been put there.
func TestDisplacePutsBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "link")
	if err := os.Symlink("first", path); err != nil {
		t.Fatal(err)
	}
	before, err := (Tree{}).Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	faster := Tree{Step: func(op, _ string) error {
		if op != "exchange" {
			return nil
		}
		now, err := (Tree{}).Lstat(path)
		if err == nil && IDOf(now) == IDOf(before) {
			err = errors.Join(os.Symlink("faster", path+".new"), os.Rename(path+".new", path))
		}
		return err
	}}
	err = faster.Displace(path, "mine", func(st unix.Stat_t) bool { return IDOf(st) == IDOf(before) })
	if !errors.Is(err, unix.EEXIST) {
		t.Errorf("got %v", err)
	}
	if target, _ := os.Readlink(path); target != "faster" {
		t.Errorf("got %q", target)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// Scan shows each name once, and no more after visit has had enough.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 500 { // more than the kernel returns at once
		name := fmt.Sprintf("%03d", i)
		want = append(want, name)
		if err := os.Symlink("x", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := (Tree{}).Scan(dir, func(name string) bool {
		got = append(got, name)
		return true
	})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v", len(got), err)
	}
	few := 0
	err = (Tree{}).Scan(dir, func(string) bool {
		few++
		return few < 7
	})
	if err != nil || few != 7 {
		t.Errorf("%d names, %v", few, err)
	}
	err = (Tree{}).Scan(filepath.Join(dir, "001"), func(string) bool { return true })
	if !errors.Is(err, unix.ENOENT) {
		t.Errorf("not a directory: %v", err)
	}
}
