// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

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
			// Other paths are not affected, but no link is replaced there.
			if err := pinned.Point(prefix+"/usr/sbin/file", prefix+"/sbin/two"); !errors.Is(err, errUnpinned) {
				t.Errorf("point another path: got %v", err)
			}
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

// In the process' own tree, the kernel follows a link in a pinned directory from that directory, not from its path.
func TestPinnedLink(t *testing.T) {
	_, dir := image(t)
	sbin := filepath.Join(dir, "usr/sbin")
	err := errors.Join(os.Mkdir(filepath.Join(sbin, "sub"), 0o755), os.Symlink("sub/file", filepath.Join(sbin, "link")))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(sbin, "sub/file"), "in a subdirectory")
	pinned, unpin, err := Tree{}.Pin(sbin)
	if err != nil {
		t.Fatal(err)
	}
	defer unpin()
	if err := os.Rename(sbin, filepath.Join(dir, "usr/before")); err != nil {
		t.Fatal(err)
	}
	if st, err := pinned.Stat(sbin + "/link"); err != nil || st.Size != int64(len("in a subdirectory")) {
		t.Errorf("got %d bytes, %v", st.Size, err)
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
	if _, err := pinned.Stat("/etc/../../../../../../usr/sbin/file"); err != nil {
		t.Errorf("a path that goes up from it: got %v", err)
	}
	if _, _, err := tree.Pin("/usr/sbin/file"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file: got %v", err)
	}
}
