// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// image is another root, with links of every kind in it.
func image(t *testing.T) (Tree, string) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"usr/sbin", "etc", "a/b"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "usr/sbin/file"), []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, target := range map[string]string{
		"sbin":     "usr/sbin",
		"absolute": "/usr/sbin",
		"etc/file": "/sbin/file",
		"up":       "../../../../usr",
		"a/b/back": "../../absolute/file",
		"loop":     "loop",
		"chain":    "etc/file",
		"root":     "/",
		"dangling": "/nowhere/file",
		"lost":     "found",
		"hop":      "a/b/../../up/sbin/file",
	} {
		if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree, dir
}

// Every path resolves as chroot(2) would have it.
func TestResolve(t *testing.T) {
	tree, dir := image(t)
	want, err := (Tree{}).Stat(filepath.Join(dir, "usr/sbin/file"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/usr/sbin/file", "/sbin/file", "/absolute/file", "/etc/file", "/up/sbin/file", "/a/b/back", "/chain",
		"/root/sbin/file", "/root/root/etc/../chain", "//usr/./sbin//file", "/../../usr/sbin/file", "/hop",
		"usr/sbin/file", "/absolute/../sbin/file",
	} {
		if st, err := tree.Stat(path); err != nil || IDOf(st) != IDOf(want) {
			t.Errorf("%s: %v", path, err)
		}
		if f, err := tree.Open(path); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
	}
	for path, want := range map[string]error{
		"/loop":      unix.ELOOP,
		"/loop/file": unix.ELOOP,
		"/dangling":  unix.ENOENT,
		"/nowhere":   unix.ENOENT,
	} {
		if _, err := tree.Stat(path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	for path, want := range map[string]string{
		"/":           ".",
		"/..":         ".",
		"/root":       ".",
		"/usr/..":     ".",
		"/usr/sbin/.": "usr/sbin",
		"/a/b/../..":  ".",
	} {
		want, err := (Tree{}).Stat(filepath.Join(dir, want))
		if st, failed := tree.Stat(path); failed != nil || err != nil || IDOf(st) != IDOf(want) {
			t.Errorf("%s: %v, %v", path, failed, err)
		}
	}
	for _, path := range []string{"/..", "/usr/../.."} {
		want, err := (Tree{}).Stat(dir)
		if st, failed := tree.Lstat(path); failed != nil || err != nil || IDOf(st) != IDOf(want) {
			t.Errorf("%s leads outside: %v, %v", path, failed, err)
		}
	}
	if target, err := tree.Readlink("/absolute/../../etc/file"); target != "/sbin/file" || err != nil {
		t.Errorf("got %q, %v", target, err)
	}
}

// A change through a link that is absolute, or that leads out of the root, stays inside.
func TestChangesStayInside(t *testing.T) {
	tree, dir := image(t)
	for _, via := range []string{"/absolute", "/up/sbin", "/sbin"} {
		if err := tree.Point(via+"/link", via+"/file"); err != nil {
			t.Error(err)
		}
		if target, err := os.Readlink(filepath.Join(dir, "usr/sbin/link")); target != "file" || err != nil {
			t.Errorf("%s: got %q, %v", via, target, err)
		}
		if err := tree.Unlink(via + "/link"); err != nil {
			t.Error(err)
		}
	}
	if err := tree.Unlink("/a"); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}

func TestFollow(t *testing.T) {
	tree, _ := image(t)
	c, err := tree.Follow("/chain")
	if err != nil || c.End != "/sbin/file" || len(c.Hops) != 3 {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := tree.Follow("/loop"); !errors.Is(err, unix.ELOOP) || len(c.Hops) != maxLinks {
		t.Errorf("got %d hops, %v", len(c.Hops), err)
	}
	if c, err := tree.Follow("/nowhere"); len(c.Hops) != 0 || !IsNotExist(err) {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A symlink with an empty target, as a FUSE server may show it, is broken.
func TestBeside(t *testing.T) {
	for target, want := range map[string]string{"file": "/a/file", "/b": "/b", "../c": "/a/../c", "": ""} {
		if got, err := beside("/a/link", target); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", target, got, err)
		}
	}
}

func TestStatLink(t *testing.T) {
	tree, dir := image(t)
	want, err := (Tree{}).Lstat(filepath.Join(dir, "chain"))
	if err != nil {
		t.Fatal(err)
	}
	st, target, err := tree.StatLink("/chain")
	if err != nil || target != "etc/file" || IDOf(st) != IDOf(want) {
		t.Errorf("got %+v, %q, %v", st, target, err)
	}
	for path, want := range map[string]error{"/usr/sbin/file": unix.EINVAL, "/usr": unix.EINVAL, "/gone": unix.ENOENT} {
		if _, target, err := tree.StatLink(path); !errors.Is(err, want) || target != "" {
			t.Errorf("%s: got %q, %v", path, target, err)
		}
	}
}
