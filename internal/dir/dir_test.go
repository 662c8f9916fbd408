// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package dir

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	host.Check(t, err)
	t.Cleanup(d.Close)
	return d
}

// Replace puts a link in place of what has the name, whatever processes that were killed have left, and leaves nothing
// else. A directory stays.
func TestReplace(t *testing.T) {
	for _, test := range []struct {
		doc, before, temporary string
	}{
		{"nothing", "", ""},
		{"a link", "old", ""},
		{"a temporary link is left", "old", "older"},
	} {
		d := open(t, t.TempDir())
		for name, content := range map[string]string{"name": test.before, "name.new": test.temporary} {
			if content != "" {
				host.Check(t, d.Symlink(content, name))
			}
		}
		host.Check(t, d.Replace("new", "name"))
		got, err := d.Readlink("name")
		entries, _ := os.ReadDir(d.Path())
		if err != nil || got != "new" || len(entries) != 1 {
			t.Errorf("%s: got %q, %v, %v", test.doc, got, err, entries)
		}
	}
	d := open(t, t.TempDir())
	host.Check(t, os.Mkdir(d.Join("name"), 0o755))
	err := d.Replace("new", "name")
	entries, _ := os.ReadDir(d.Path())
	if err == nil || len(entries) != 1 {
		t.Errorf("a directory: got %v, %v", err, entries)
	}
}

// A temporary link that another process has renamed is no error: the name is the other's.
func TestFaster(t *testing.T) {
	d := open(t, t.TempDir())
	d.Step = func(operation, name string) {
		if operation == "rename" {
			host.Check(t, os.Rename(d.Join(name+".new"), d.Join(name)))
		}
	}
	host.Check(t, d.Replace("new", "name"))
}

// A name is in the directory that was opened, wherever its path leads by now.
func TestMoved(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.Mkdir(top+"/one", 0o755))
	d := open(t, top+"/one")
	host.Check(t, os.Rename(top+"/one", top+"/two"))
	host.Check(t, os.Mkdir(top+"/one", 0o755))
	host.Check(t, d.Symlink("content", "name"))
	_, err := os.Lstat(top + "/two/name")
	host.Check(t, err)
}

// The lock is one process', until it closes the directory.
func TestLock(t *testing.T) {
	path := t.TempDir()
	first, second := open(t, path), open(t, path)
	host.Check(t, first.Lock(0))
	tries := 0
	second.Step = func(string, string) { tries++ }
	err := second.Lock(2)
	if !errors.Is(err, unix.EWOULDBLOCK) || tries != 3 {
		t.Errorf("got %v after %d tries", err, tries)
	}
	first.Close()
	host.Check(t, second.Lock(0))
}
