// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Another user than root, and another group.
const stranger = 65534

// owned makes a file or directory somebody's. A mode that is 0 is left alone.
func owned(t *testing.T, path string, uid, gid int, mode os.FileMode) {
	t.Helper()
	err := os.Lchown(path, uid, gid)
	if err == nil && mode != 0 {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Each thing on the way to a file exposes it if others own or can write it.
func TestExposed(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "give files to other users: not root")
	}
	const sticky = os.ModeSticky
	for _, test := range []struct {
		doc      string
		path     string // whose owner and mode change, below the root
		uid, gid int
		mode     os.FileMode
		asked    string // the path that is asked about
		want     string
	}{
		{doc: "root's file", path: "/usr/sbin/file", mode: 0o755, asked: "/usr/sbin/file"},
		{doc: "root's directory", path: "/usr/sbin", mode: 0o755, asked: "/usr/sbin"},
		{doc: "that root alone can read", path: "/usr/sbin", mode: 0o700, asked: "/usr/sbin/file"},
		{doc: "group root writes the directory", path: "/usr/sbin", mode: 0o775, asked: "/usr/sbin/file"},

		{
			doc: "the file is another's", path: "/usr/sbin/file", uid: stranger,
			asked: "/usr/sbin/file", want: "/usr/sbin/file",
		},
		{doc: "others write it", path: "/usr/sbin/file", mode: 0o757, asked: "/usr/sbin/file", want: "/usr/sbin/file"},
		{
			doc: "another group writes it", path: "/usr/sbin/file", gid: stranger, mode: 0o775,
			asked: "/usr/sbin/file", want: "/usr/sbin/file",
		},
		{
			doc: "group root writes it", path: "/usr/sbin/file", mode: 0o775,
			asked: "/usr/sbin/file", want: "/usr/sbin/file",
		},
		{
			doc: "another group writes the directory", path: "/usr/sbin", gid: stranger, mode: 0o775,
			asked: "/usr/sbin", want: "/usr/sbin",
		},
		{doc: "another group reads it", path: "/usr/sbin/file", gid: stranger, mode: 0o755, asked: "/usr/sbin/file"},

		{
			doc: "the directory is another's", path: "/usr/sbin", uid: stranger,
			asked: "/usr/sbin/file", want: "/usr/sbin",
		},
		{doc: "others write the directory", path: "/usr/sbin", mode: 0o777, asked: "/usr/sbin", want: "/usr/sbin"},
		{doc: "the parent is another's", path: "/usr", uid: stranger, asked: "/usr/sbin/file", want: "/usr"},
		{doc: "others write the parent", path: "/usr", mode: 0o777, asked: "/usr/sbin/file", want: "/usr"},

		{doc: "a sticky directory on the way", path: "/usr", mode: 0o777 | sticky, asked: "/usr/sbin/file"},
		{
			doc: "a sticky one at the end", path: "/usr/sbin", mode: 0o777 | sticky,
			asked: "/usr/sbin", want: "/usr/sbin",
		},
		{
			doc: "what does not exist in a sticky one", path: "/usr", mode: 0o777 | sticky,
			asked: "/usr/gone/file", want: "/usr",
		},
		{
			doc: "what does not exist in a directory of root in a sticky one", path: "/usr", mode: 0o777 | sticky,
			asked: "/usr/sbin/gone",
		},
		{
			doc: "what does not exist behind a link of root in a sticky one", path: "/", mode: 0o777 | sticky,
			asked: "/lost", want: "/",
		},
		{doc: "what does not exist", path: "/usr", mode: 0o755, asked: "/usr/gone/file"},

		{doc: "a symlink is another's", path: "/absolute", uid: stranger, asked: "/absolute/file", want: "/absolute"},
		{doc: "the last symlink is", path: "/chain", uid: stranger, asked: "/chain", want: "/chain"},
		{doc: "a symlink of root", path: "/chain", asked: "/chain"},
		{doc: "one behind another", path: "/sbin", uid: stranger, asked: "/chain", want: "/sbin"},
		{
			doc: "the file behind symlinks", path: "/usr/sbin/file", uid: stranger,
			asked: "/chain", want: "/usr/sbin/file",
		},
		{doc: "what the path only passes", path: "/a", mode: 0o777, asked: "/a/b/../../usr/sbin/file", want: "/a"},
		{doc: "a loop", path: "/loop", asked: "/loop", want: "/loop"},
	} {
		t.Run(test.doc, func(t *testing.T) {
			tree, dir := image(t)
			owned(t, filepath.Join(dir, test.path), test.uid, test.gid, test.mode)
			if got := tree.Exposed(test.asked); got != test.want {
				t.Errorf("Exposed: got %q, want %q", got, test.want)
			}
			if got := tree.RootsAlone(test.asked); got != test.want {
				t.Errorf("RootsAlone: got %q, want %q", got, test.want)
			}
			settles(t, tree, test.asked, test.want)
		})
	}
}

// In another tree, the owner of its top counts, but not as root. Nor does the caller.
func TestExposedInAUsersTree(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "give files to other users: not root")
	}
	tree, dir := image(t)
	for _, path := range []string{"", "usr", "usr/sbin"} {
		owned(t, filepath.Join(dir, path), stranger, stranger, 0o775)
	}
	owned(t, filepath.Join(dir, "usr/sbin/file"), stranger, stranger, 0o755)
	if got := tree.Exposed("/usr/sbin/file"); got != "" {
		t.Errorf("for its owner: got %q", got)
	}
	if got := tree.RootsAlone("/usr/sbin/file"); got != "/" {
		t.Errorf("for root: got %q", got)
	}
	owned(t, filepath.Join(dir, "usr/sbin"), stranger-1, stranger, 0)
	if got := tree.Exposed("/usr/sbin/file"); got != "/usr/sbin" {
		t.Errorf("a third user's: got %q", got)
	}

	// In the process' own tree no owner of the top counts.
	if got := (Tree{}).Exposed(dir); got != dir {
		t.Errorf("in the process' own tree: got %q, want %q", got, dir)
	}
	_, mine := image(t)
	if got := (Tree{}).Exposed(filepath.Join(mine, "usr/sbin/file")); got != "" {
		t.Errorf("root's own: got %q", got)
	}
}

// A caller's own files are not exposed, unless the caller has no ID in its user namespace: then those of everybody else
// who has none seem its own.
func TestExposedToCaller(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "give files to other users: not root")
	}
	_, dir := image(t)
	file := filepath.Join(dir, "usr/sbin/file")
	for _, test := range []struct {
		doc    string
		caller int
		want   string
	}{
		{doc: "the caller's own", caller: 1000, want: ""},
		{doc: "of somebody without an ID, as the caller is", caller: Overflow, want: file},
	} {
		t.Run(test.doc, func(t *testing.T) {
			owned(t, file, test.caller, 0, 0o755)
			got := ""
			err := asUser(test.caller, func() { got = Tree{}.Exposed(file) })
			if got != test.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// asUser does something as another effective user, in a thread that ends with it. The thread keeps its capabilities:
// the way to the test's files may be root's alone.
func asUser(uid int, do func()) (err error) {
	var wait sync.WaitGroup
	wait.Go(func() {
		runtime.LockOSThread()
		const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP, see capabilities(7)
		err = unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0)
		if err != nil {
			return
		}
		const same = ^uintptr(0)
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same)
		if errno != 0 {
			err = errno
			return
		}
		do()
	})
	wait.Wait()
	return err
}

// An access control list can let another user write where the group is root's.
func TestExposedByACL(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "set an access control list: not root")
	}
	// As it is stored, see linux/posix_acl_xattr.h: a version, and for each entry a tag, permissions and an ID.
	const nobody = "\xff\xff\xff\xff"
	list := "\x02\x00\x00\x00" +
		"\x01\x00\x07\x00" + nobody + // the owner: rwx
		"\x02\x00\x07\x00" + "\xfe\xff\x00\x00" + // user 65534: rwx
		"\x04\x00\x05\x00" + nobody + // the group: r-x
		"\x10\x00\x07\x00" + nobody + // at most rwx
		"\x20\x00\x05\x00" + nobody // others: r-x
	tree, dir := image(t)
	owned(t, filepath.Join(dir, "usr/sbin"), 0, 0, 0o775)
	if !tree.openByACL("/gone", unix.Stat_t{Mode: unix.S_IFDIR | 0o775}) {
		t.Error("of a directory that cannot be opened, it is not known that there is none")
	}
	if got := tree.Exposed("/usr/sbin/file"); got != "" {
		t.Errorf("without: got %q", got)
	}
	if err := unix.Setxattr(filepath.Join(dir, "usr/sbin"), "system.posix_acl_access", []byte(list), 0); err != nil {
		host.Cannot(t, "set an access control list: %v", err)
	}
	if got := tree.Exposed("/usr/sbin/file"); got != "/usr/sbin" {
		t.Errorf("with: got %q", got)
	}
	if got := (Tree{}).Exposed(filepath.Join(dir, "usr/sbin")); got != filepath.Join(dir, "usr/sbin") {
		t.Errorf("in the process' own tree: got %q", got)
	}
}
