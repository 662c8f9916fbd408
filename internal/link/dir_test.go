// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

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
		if d.Path != top+test.name || d.Join("name") != top+test.name+"/name" || !d.IsAt(top) {
			t.Errorf("%s: got %q", test.doc, d.Path)
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
	host.Check(t, d.symlink("content", "link"))
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
	host.Check(t, d.symlink("file", "link"))
	err := d.symlink("other", "link")
	if !errors.Is(err, unix.EEXIST) {
		t.Errorf("a second link: got %v", err)
	}
	d.Exe = top + "/file"
	if !d.isRunning("file") || !d.isRunning("link") || d.isRunning("gone") {
		t.Error("the running file is not known by its names")
	}
	link, err := d.Lstat("link")
	if err != nil || link.Mode&unix.S_IFMT != unix.S_IFLNK || file.IsAt(top+"/file", link) {
		t.Errorf("the link itself: got mode %o, %v", link.Mode, err)
	}
	content, err := d.Readlink("file")
	if content != "" || !errors.Is(err, unix.EINVAL) {
		t.Errorf("the content of a file: got %q, %v", content, err)
	}
	host.Check(t, d.remove("link"))
	if got := list(t, top); got != "file" {
		t.Errorf("got %q", got)
	}
	for doc, err := range map[string]error{
		"lstat":    second(d.Lstat("link")),
		"readlink": second(d.Readlink("link")),
		"unlink":   d.remove("link"),
	} {
		if !os.IsNotExist(err) || err.Error() != doc+" "+top+"/link: no such file or directory" {
			t.Errorf("%s of nothing: got %v", doc, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The longest content that a link can have is not cut off.
func TestLongContent(t *testing.T) {
	d := open(t, t.TempDir())
	err := d.Replace(strings.Repeat("x", unix.PathMax), "link")
	if !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("got %v", err)
	}
	long := strings.Repeat("x", unix.PathMax-1)
	host.Check(t, d.Replace(long, "link"))
	got, err := d.Readlink("link")
	if got != long || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestWritable(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	top := t.TempDir()
	d := open(t, top)
	if !d.isWritable() || open(t, readOnly(t, top)).isWritable() {
		t.Error("it does not matter how the file system is mounted")
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
	Look(d)
	want := []string{
		"lock", "unlink name.new", "symlink name.new", "rename name", "unlink program.new",
		"create program.new", "rename program", "look",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
