// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package dir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// open opens a directory until the test ends.
func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	host.Check(t, err)
	t.Cleanup(d.Close)
	return d
}

// list is what a directory has: names, and what the symlinks among them contain.
func list(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	host.Check(t, err)
	var all []string
	for _, entry := range entries {
		text := entry.Name()
		content, err := os.Readlink(filepath.Join(path, text))
		if err == nil {
			text += " -> " + content
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestOpen(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.WriteFile(top+"/file", nil, 0o644))
	host.Check(t, os.Symlink(".", top+"/link"))
	for _, test := range []struct {
		doc, name string
		want      error
	}{
		{doc: "a directory", name: ""},
		{doc: "a link to one", name: "/link"},
		{doc: "a file", name: "/file", want: unix.ENOTDIR},
		{doc: "nothing", name: "/gone", want: unix.ENOENT},
	} {
		d, err := Open(top + test.name)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v", test.doc, err)
		}
		if err != nil {
			continue
		}
		if d.Path() != top+test.name || d.Join("name") != top+test.name+"/name" || !d.IsAt(top) {
			t.Errorf("%s: got %q", test.doc, d.Path())
		}
		flags, err := unix.FcntlInt(uintptr(d.fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: execve(2) does not close it: %v", test.doc, err)
		}
		d.Close()
	}
	if root := open(t, "/"); root.Join("name") != "/name" {
		t.Errorf("got %q", root.Join("name"))
	}
	if open(t, "/").IsAt(top) {
		t.Error("two directories are the same")
	}
}

// The directory stays the one that was opened, whatever happens to its path.
func TestMoved(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.Mkdir(top+"/was", 0o755))
	d := open(t, top+"/was")
	host.Check(t, os.Rename(top+"/was", top+"/is"))
	host.Check(t, os.Mkdir(top+"/was", 0o755))
	host.Check(t, d.Symlink("content", "link"))
	host.Check(t, d.Replace("other", "replaced"))
	got, err := d.Readlink("link")
	if got != "content" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if is, was := list(t, top+"/is"), list(t, top+"/was"); is != "link -> content, replaced -> other" || was != "" {
		t.Errorf("got %q, and at the old path %q", is, was)
	}
}

func TestNames(t *testing.T) {
	top := t.TempDir()
	d := open(t, top)
	host.Check(t, os.WriteFile(top+"/file", nil, 0o644))
	host.Check(t, d.Symlink("file", "link"))
	host.Check(t, d.Link(top+"/link", "hard"))
	err := d.Symlink("other", "link")
	if !errors.Is(err, unix.EEXIST) {
		t.Errorf("a second link: got %v", err)
	}
	file, err := IDAt(top + "/file")
	host.Check(t, err)
	for _, name := range []string{"file", "link", "hard"} {
		id, err := d.ID(name)
		if id != file || err != nil {
			t.Errorf("%s: got %v, %v, want %v", name, id, err, file)
		}
	}
	link, err := d.Lstat("link")
	if err != nil || link.Mode&unix.S_IFMT != unix.S_IFLNK || IDOf(link) == file {
		t.Errorf("the link itself: got mode %o, %v", link.Mode, err)
	}
	content, err := d.Readlink("file")
	if content != "" || !errors.Is(err, unix.EINVAL) {
		t.Errorf("the content of a file: got %q, %v", content, err)
	}
	host.Check(t, d.Remove("link"))
	if got := list(t, top); got != "file, hard" {
		t.Errorf("got %q", got)
	}
	for doc, err := range map[string]error{
		"lstat":    second(d.Lstat("link")),
		"stat":     second(d.ID("link")),
		"readlink": second(d.Readlink("link")),
		"unlink":   d.Remove("link"),
	} {
		if !os.IsNotExist(err) || err.Error() != doc+" "+top+"/link: no such file or directory" {
			t.Errorf("%s of nothing: got %v", doc, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A long content is not cut off.
func TestLongContent(t *testing.T) {
	d := open(t, t.TempDir())
	long := strings.Repeat("x", 4000)
	host.Check(t, d.Symlink(long, "link"))
	got, err := d.Readlink("link")
	if got != long || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestWritable(t *testing.T) {
	top := t.TempDir()
	d := open(t, top)
	host.Check(t, d.Writable())
	if os.Geteuid() == 0 {
		return // who may write anywhere
	}
	host.Check(t, os.Chmod(top, 0o555))
	err := d.Writable()
	if !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
}

// A step is told before each system call about a name, so that a test can stop there.
func TestSteps(t *testing.T) {
	top := t.TempDir()
	d := open(t, top)
	var got []string
	d.Step = func(operation, name string) { got = append(got, strings.TrimSpace(operation+" "+name)) }
	host.Check(t, d.Lock(0))
	host.Check(t, d.Replace("content", "name"))
	host.Check(t, d.WriteProgram("program", nil))
	_, _, err := d.Read("program")
	host.Check(t, err)
	host.Check(t, d.Link(top+"/program", "hard"))
	d.Unlock()
	want := []string{
		"lock", "symlink name.new", "rename name", "unlink program.new", "create program", "rename program",
		"open program", "link hard", "unlock",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
