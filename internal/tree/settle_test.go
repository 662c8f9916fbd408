// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// settles checks that Settle agrees with Exposed about a path, and that a path that leads nowhere is an error.
func settles(t *testing.T, tree Tree, path, want string) {
	t.Helper()
	there, missing := tree.Stat(path)
	end, exposed, err := tree.Settle(path)
	switch {
	case missing != nil:
		if exposed == "" && err == nil {
			t.Errorf("Settle: got %q for what does not exist", end)
		}
	case exposed != want || err != nil:
		t.Errorf("Settle: got %q and %v, want %q", exposed, err, want)
	case want == "":
		st, err := tree.Lstat(end)
		if err != nil || IDOf(st) != IDOf(there) || IsLink(st) {
			t.Errorf("Settle: %q leads to %q, which is another file: %v", path, end, err)
		}
	}
}

// A path that goes up, or ends in links of links, ends where the kernel says.
func TestSettle(t *testing.T) {
	tree, _ := image(t)
	for _, path := range []string{"/", "/usr/sbin/../sbin/file", "/../usr", "/absolute/../sbin", "/chain"} {
		settles(t, tree, path, "")
	}
}

// It follows as many symlinks as the kernel.
func TestSettleManyLinks(t *testing.T) {
	tree, dir := image(t)
	for i := range maxLinks {
		err := os.Symlink("link-"+strconv.Itoa(i), filepath.Join(dir, "link-"+strconv.Itoa(i+1)))
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "link-0"), "a file")
	most := "/link-" + strconv.Itoa(maxLinks)
	settles(t, tree, most, "")
	if err := os.Symlink(most, filepath.Join(dir, "more")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tree.Settle("/more"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("one more: got %v", err)
	}
}

// In a file system that is mounted read-only, others can change neither their directories nor their files. A symlink or
// file of theirs at the end, or a symlink on the way, has been put there by them all the same.
func TestSettleReadOnly(t *testing.T) {
	for doc, test := range map[string]struct {
		mode, uid uint32
		end       bool
		want      bool
	}{
		"a directory on the way":  {unix.S_IFDIR | 0o777, stranger, false, false},
		"a directory at the end":  {unix.S_IFDIR | 0o755, stranger, true, true},
		"a symlink on the way":    {unix.S_IFLNK | 0o777, stranger, false, true},
		"a file":                  {unix.S_IFREG | 0o755, stranger, true, true},
		"a file of root":          {unix.S_IFREG | 0o777, 0, true, false},
		"a link of root":          {unix.S_IFLNK | 0o777, 0, false, false},
		"a directory for anybody": {unix.S_IFDIR | 0o777, 0, true, false},
	} {
		s := seen{stat: unix.Stat_t{Mode: test.mode, Uid: test.uid}, readOnly: true}
		if got := (Tree{}).unsettled("/gone", s, root(), test.end); got != test.want {
			t.Errorf("%s: got %v", doc, got)
		}
	}
}
