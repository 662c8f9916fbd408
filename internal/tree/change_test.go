// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// What a killed process has left under the temporary name is removed if it is a symlink. What else has the name
// stays, and another name is taken; where that is taken too, nothing changes.
func TestPointTemporary(t *testing.T) {
	own := ".link." + strconv.Itoa(os.Getpid())
	for _, test := range []struct {
		doc     string
		prepare func(dir string) error
		left    []string // beside the link
		err     error
	}{
		{
			doc:     "nothing",
			prepare: func(string) error { return nil },
		},
		{
			doc:     "a symlink",
			prepare: func(dir string) error { return os.Symlink("gone", dir+"/.link.new") },
		},
		{
			doc:     "a file",
			prepare: func(dir string) error { return os.WriteFile(dir+"/.link.new", nil, 0o644) },
			left:    []string{".link.new"},
		},
		{
			doc:     "a FIFO",
			prepare: func(dir string) error { return unix.Mkfifo(dir+"/.link.new", 0o644) },
			left:    []string{".link.new"},
		},
		{
			doc: "a directory, and a symlink of a process with the same ID",
			prepare: func(dir string) error {
				return errors.Join(os.Mkdir(dir+"/.link.new", 0o755), os.Symlink("gone", dir+"/"+own))
			},
			left: []string{".link.new"},
		},
		{
			doc: "two directories",
			prepare: func(dir string) error {
				return errors.Join(os.Mkdir(dir+"/.link.new", 0o755), os.Mkdir(dir+"/"+own, 0o755))
			},
			left: []string{".link.new", own},
			err:  unix.EEXIST,
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(test.prepare(dir), os.Symlink("before", dir+"/link")); err != nil {
				t.Fatal(err)
			}
			if err := (Tree{}).Point(dir+"/link", dir+"/after"); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			want := "after"
			if test.err != nil {
				want = "before"
			}
			if target, err := os.Readlink(dir + "/link"); target != want || err != nil {
				t.Errorf("got %q, %v, want %q", target, err, want)
			}
			left, err := filepath.Glob(dir + "/.*")
			if err != nil {
				t.Fatal(err)
			}
			for i := range left {
				left[i] = filepath.Base(left[i])
			}
			slices.Sort(left)
			slices.Sort(test.left)
			if !slices.Equal(left, test.left) {
				t.Errorf("left: %q, want %q", left, test.left)
			}
		})
	}
}

// A rename that fails leaves nothing under the temporary name.
func TestPointFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/link/file", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (Tree{}).Point(dir+"/link", "/elsewhere"); !errors.Is(err, unix.EISDIR) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A link in the same directory as its file has the file's name alone.
func TestContent(t *testing.T) {
	tree, _ := image(t)
	for _, test := range []struct{ link, file, want string }{
		{"/usr/sbin/link", "/usr/sbin/file", "file"},
		{"/sbin/link", "/usr/sbin/file", "file"},
		{"/etc/link", "/usr/sbin/file", "/usr/sbin/file"},
	} {
		if got, err := tree.Content(test.link, test.file); got != test.want || err != nil {
			t.Errorf("%v: got %q, %v", test, got, err)
		}
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (Tree{}).Content("/etc/link", "file"); got != here+"/file" || err != nil {
		t.Errorf("a relative path: got %q, %v", got, err)
	}
}

// openFiles is how many descriptors this process has.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// The lock is one for all paths of a directory, and ends with unlock. One that cannot be had leaves no file open.
func TestLock(t *testing.T) {
	tree, _ := image(t)
	tree.Step = func(string, string) error { return nil } // which keeps Lock from sleeping
	unlock, err := tree.TryLock("/usr/sbin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.TryLock("/sbin"); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	before := openFiles(t)
	if _, err := tree.Lock("/sbin"); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if after := openFiles(t); after > before+10 { // it has tried 500 times
		t.Errorf("%d files are open, and were %d before", after, before)
	}
	unlock()
	unlock, err = tree.Lock("/sbin")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	for path, want := range map[string]error{"/usr/sbin/file": unix.ENOTDIR, "/gone": unix.ENOENT} {
		if _, err := tree.Lock(path); !errors.Is(err, want) || errors.Is(err, ErrBusy) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	refused := errors.New("refused")
	tree.Step = func(op, path string) error { return refused }
	if _, err := tree.TryLock("/sbin"); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
