// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A symlink that others can change does not decide which tree is opened.
func TestOpenMisled(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "give files to other users: not root")
	}
	_, dir := image(t)
	home := filepath.Join(dir, "home")
	err := errors.Join(
		os.MkdirAll(filepath.Join(home, "tree/sub"), 0o755),
		os.Symlink("tree", filepath.Join(home, "link")),
		os.Symlink("/", filepath.Join(home, "top")),
		os.Symlink("home/tree", filepath.Join(dir, "to")),
	)
	if err != nil {
		t.Fatal(err)
	}
	open := func(path string) error {
		_, err := Open(path)
		return err
	}
	all := []string{"/home/tree", "/home/link", "/home/top", "/home/link/sub", "/to/sub", "/home/tree/../link"}
	for _, path := range all {
		if err := open(dir + path); err != nil {
			t.Errorf("all is root's: %v", err)
		}
	}
	owned(t, home, stranger, stranger, 0)
	for _, path := range all {
		want := ErrMisled
		if path == "/home/tree" || path == "/to/sub" { // which passes a link of root, in root's directory
			want = nil
		}
		if err := open(dir + path); !errors.Is(err, want) {
			t.Errorf("a user's: %s: got %v, want %v", path, err, want)
		}
		if err := (Tree{}).CheckLinks(dir + path); !errors.Is(err, want) {
			t.Errorf("a user's: %s: CheckLinks: got %v, want %v", path, err, want)
		}
	}
	if err := open(home + "/gone"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	// Links of root count, unless somebody else can put one there: also as another name of a link of root.
	sticky := filepath.Join(dir, "sticky")
	err = errors.Join(
		os.MkdirAll(filepath.Join(sticky, "roots"), 0o755),
		os.Chmod(sticky, 0o777|os.ModeSticky),
		os.Symlink(home, filepath.Join(dir, "absolute-home")),
		os.Symlink(home, filepath.Join(sticky, "link")),
		os.Symlink(home, filepath.Join(sticky, "roots/link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"/absolute-home/tree":     nil,
		"/sticky/link/tree":       ErrMisled,
		"/sticky/roots/link/tree": nil,
	} {
		if err := (Tree{}).CheckLinks(dir + path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	if err := (Tree{}).CheckLinks(dir + "/loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a loop: got %v", err)
	}
	if err := (Tree{}).CheckLinks(home + "/gone/link"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	// Whatever was opened, it must be what the path leads to.
	elsewhere, err := Open(filepath.Join(home, "tree/sub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.reachedBy(home+"/tree", "/"); !errors.Is(err, ErrMisled) {
		t.Errorf("another tree: got %v", err)
	}
	if err := elsewhere.reachedBy(home+"/tree/sub", "/"); err != nil {
		t.Errorf("the same tree: got %v", err)
	}
	// A symlink was there when the path was pinned, and no longer is.
	late := home + "/late"
	if err := os.Symlink("tree", late); err != nil {
		t.Fatal(err)
	}
	pinned, unpin, err := (Tree{}).Pin(late)
	if err != nil {
		t.Fatal(err)
	}
	defer unpin()
	err = errors.Join(os.Remove(late), os.Mkdir(late, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	if err := pinned.CheckLinks(late); !errors.Is(err, ErrMisled) {
		t.Errorf("pinned through a link: got %v", err)
	}
	t.Chdir(home)
	for path, want := range map[string]error{
		"tree":          nil,
		"./tree/sub/..": nil,
		".":             nil,
		"link":          ErrMisled,
		"link/sub":      ErrMisled,
	} {
		if err := open(path); !errors.Is(err, want) {
			t.Errorf("a relative path: %s: got %v, want %v", path, err, want)
		}
	}
}

// Nothing is opened that blocks, and nothing but a file is read.
func TestOpenSpecial(t *testing.T) {
	tree, dir := image(t)
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	blocked := time.AfterFunc(time.Minute, func() {
		t.Error("it waits for a writer of the FIFO")
		_, _ = unix.Open(fifo, unix.O_RDWR|unix.O_CLOEXEC, 0) // is one, and waits for nobody
	})
	defer blocked.Stop()
	for _, path := range []string{"/fifo", "/usr"} {
		for _, open := range []func(string) (*os.File, error){tree.Open, tree.OpenEntry} {
			if f, err := open(path); !errors.Is(err, unix.EACCES) {
				t.Errorf("%s: got %v, %v", path, f, err)
			}
		}
	}
	for _, in := range []Tree{tree, {}} {
		prefix := ""
		if in.Own() {
			prefix = dir
		}
		if f, err := in.OpenEntry(prefix + "/usr/sbin/file"); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
		if _, err := in.OpenEntry(prefix + "/chain"); !errors.Is(err, unix.ELOOP) {
			t.Errorf("a symlink: got %v", err)
		}
	}
}

// A symlink is read to its end, however long it is. The first buffer has 256 bytes.
func TestLongSymlink(t *testing.T) {
	tree, dir := image(t)
	for _, length := range []int{1, 255, 256, 257, 511, 512, 513, 4095} {
		want := strings.Repeat("x", length)
		path := "/" + strconv.Itoa(length)
		if err := os.Symlink(want, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
		got, err := tree.Readlink(path)
		if got != want || err != nil {
			t.Errorf("Readlink: got %d bytes, %v, want %d", len(got), err, length)
		}
		_, got, err = tree.StatLink(path)
		if got != want || err != nil {
			t.Errorf("StatLink: got %d bytes, %v, want %d", len(got), err, length)
		}
	}
}

// What a symlink contains forges no line of a message.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"/usr/sbin/iptables":   "/usr/sbin/iptables",
		"/with a space":        "/with a space",
		"/a\nall is well":      `"/a\nall is well"`,
		"/a\x1b[2K":            `"/a\x1b[2K"`,
		"/\u202egnp":           `"/\u202egnp"`,
		"/not \xff UTF-8":      `"/not \xff UTF-8"`,
		"/a \"quote\"":         `/a "quote"`,
		"/a \"quote\" and\x7f": `"/a \"quote\" and\x7f"`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	tree, dir := image(t)
	if err := os.Symlink("gone\niptables-wrapper: all is well", filepath.Join(dir, "forged")); err != nil {
		t.Fatal(err)
	}
	_, notFollowed := tree.Follow("/forged")
	_, notOpened := tree.Open("/gone\nforged")
	for _, err := range []error{notFollowed, notOpened, tree.Unlink("/gone\nforged")} {
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
}
