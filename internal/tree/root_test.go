// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

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

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A pinned directory is what it was, under every call, although another one has taken its place.
func TestPin(t *testing.T) {
	for doc, own := range map[string]bool{"another root": false, "the process' own": true} {
		t.Run(doc, func(t *testing.T) {
			in, dir := image(t)
			prefix := ""
			if own {
				in, prefix = Tree{}, dir
			}
			// /sbin is a symlink, and a path that goes through it is in the pinned directory all the same.
			pinned, unpin, err := in.Pin(prefix + "/sbin/")
			if err != nil {
				t.Fatal(err)
			}
			defer unpin()
			before := filepath.Join(dir, "usr/before")
			after := filepath.Join(dir, "usr/sbin")
			if err := errors.Join(os.Rename(after, before), os.Mkdir(after, 0o755)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(after, "file"), "another")

			f, err := pinned.Open(prefix + "/sbin/file")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			content := make([]byte, 10)
			if n, _ := f.Read(content); string(content[:n]) != "inside" {
				t.Errorf("read %q", content[:n])
			}
			err = errors.Join(
				pinned.Symlink("file", prefix+"/sbin/one"),
				pinned.Rename(prefix+"/sbin/one", prefix+"/sbin/two"),
				pinned.Link(prefix+"/sbin/file", prefix+"/sbin/three"),
				pinned.Unlink(prefix+"/sbin/three"),
				pinned.Point(prefix+"/sbin/four", prefix+"/sbin/two"),
				pinned.Access(prefix+"/sbin/four", unix.R_OK),
				pinned.Access(prefix+"/sbin", unix.W_OK),
			)
			if err != nil {
				t.Error(err)
			}
			c, err := pinned.Follow(prefix + "/sbin/four")
			if err != nil || len(c.Hops) != 3 || c.End != prefix+"/sbin/file" {
				t.Errorf("follow: got %+v, %v", c, err)
			}
			var names []string
			err = pinned.Scan(prefix+"/sbin", func(name string) bool {
				names = append(names, name)
				return true
			})
			if err != nil || !slices.Contains(names, "four") {
				t.Errorf("scan: got %q, %v", names, err)
			}
			want, err := (Tree{}).Stat(before)
			if st, failed := pinned.Stat(prefix + "/sbin"); failed != nil || err != nil || IDOf(st) != IDOf(want) {
				t.Errorf("stat: %v, %v", failed, err)
			}
			if entries, err := os.ReadDir(after); err != nil || len(entries) != 1 {
				t.Errorf("in the other directory: %v, %v", entries, err)
			}
			if target, err := os.Readlink(filepath.Join(before, "four")); target != "two" || err != nil {
				t.Errorf("got %q, %v", target, err)
			}
			if st, failed := pinned.Stat(prefix + "/sbin/"); failed != nil || IDOf(st) != IDOf(want) {
				t.Errorf("with a slash: %v", failed)
			}
			both, unpinBoth, err := pinned.Pin(prefix + "/etc")
			if err != nil {
				t.Fatal(err)
			}
			defer unpinBoth()
			if st, err := both.Stat(prefix + "/sbin/file"); err != nil || st.Size != int64(len("inside")) {
				t.Errorf("with another pinned: %d bytes, %v", st.Size, err)
			}
			// Other paths are not affected.
			if st, err := pinned.Stat(prefix + "/usr/sbin/file"); err != nil || st.Size != int64(len("another")) {
				t.Errorf("another path: %d bytes, %v", st.Size, err)
			}
			if _, err := pinned.Stat(prefix + "/sbin/../sbin/file"); err != nil {
				t.Errorf("through it: %v", err)
			}
			up, err := (Tree{}).Stat(filepath.Join(dir, "usr"))
			if st, failed := pinned.Stat(prefix + "/sbin/.."); failed != nil || err != nil || IDOf(st) != IDOf(up) {
				t.Errorf("above it: %v, %v", failed, err)
			}
			t.Chdir(after)
			if st, err := pinned.Stat("file"); own && (err != nil || st.Size != int64(len("another"))) {
				t.Errorf("in the working directory: %d bytes, %v", st.Size, err)
			}
		})
	}
}

func TestPinLoop(t *testing.T) {
	tree, dir := image(t)
	if err := os.Symlink("loop", filepath.Join(dir, "etc/loop")); err != nil {
		t.Fatal(err)
	}
	pinned, unpin, err := tree.Pin("/etc")
	if err != nil {
		t.Fatal(err)
	}
	defer unpin()
	if _, err := pinned.Stat("/etc/loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("got %v", err)
	}
	if st, err := pinned.Stat("/etc/file"); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		t.Errorf("a link out of it: got %+v, %v", st, err)
	}
	if _, _, err := tree.Pin("/usr/sbin/file"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file: got %v", err)
	}
}

// A symlink that others can change does not decide which tree is opened.
func TestOpenLed(t *testing.T) {
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
		want := ErrLed
		if path == "/home/tree" || path == "/to/sub" { // which passes a link of root, in root's directory
			want = nil
		}
		if err := open(dir + path); !errors.Is(err, want) {
			t.Errorf("a user's: %s: got %v, want %v", path, err, want)
		}
		if err := Unled(dir + path); !errors.Is(err, want) {
			t.Errorf("a user's: %s: Unled: got %v, want %v", path, err, want)
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
		"/sticky/link/tree":       ErrLed,
		"/sticky/roots/link/tree": nil,
	} {
		if err := Unled(dir + path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	if err := Unled(dir + "/loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a loop: got %v", err)
	}
	if err := Unled(home + "/gone/link"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	// Whatever was opened, it must be what the path leads to.
	elsewhere, err := Open(filepath.Join(home, "tree/sub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.reachedBy(home + "/tree"); !errors.Is(err, ErrLed) {
		t.Errorf("another tree: got %v", err)
	}
	if err := elsewhere.reachedBy(home + "/tree/sub"); err != nil {
		t.Errorf("the same tree: got %v", err)
	}
	t.Chdir(home)
	for path, want := range map[string]error{
		"tree":          nil,
		"./tree/sub/..": nil,
		".":             nil,
		"link":          ErrLed,
		"link/sub":      ErrLed,
	} {
		if err := open(path); !errors.Is(err, want) {
			t.Errorf("a relative path: %s: got %v, want %v", path, err, want)
		}
	}
}

// Nothing is opened that blocks, and nothing but a file is read.
func TestOpenSpecial(t *testing.T) {
	tree, dir := image(t)
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
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
