// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree looks at and changes the files below a root: the process' own, or that of an image that is being built.
package tree

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Tree is a file system as seen from its root. The zero Tree is the process' own. Paths are absolute; in the process' own
// tree they may be relative too.
type Tree struct {
	root *os.Root // another root; nil: the process' own

	// Step, if set, is called before each system call that changes something, takes a lock or reads the memory. Tests make
	// it fail there, kill the caller, or let another one go first.
	Step func(op, path string) error
}

// maxLinks is how many symlinks the kernel follows in one path.
const maxLinks = 40

// Open opens the tree below a directory. A path in it resolves as chroot(2) would have it, and never leads outside: os.Root
// sees to that. It needs no capability.
func Open(dir string) (Tree, error) {
	root, err := os.OpenRoot(dir)
	return Tree{root: root}, err
}

// Own reports whether this is the process' own tree, in which programs can be run.
func (t Tree) Own() bool { return t.root == nil }

// at makes a system call with a path. Each is one of the *at(2) calls, which take a directory and a path from there: in
// another root what os.Root opened, and a name in it. A symlink of that name has been followed if it is to be.
func (t Tree) at(path string, follow bool, call func(dir int, path string) error) error {
	if t.Own() {
		return call(unix.AT_FDCWD, path)
	}
	parent := func() (*os.File, error) {
		return t.root.OpenFile("."+programs.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	}
	dir, err := parent()
	if err != nil || follow || !filepath.IsLocal(programs.Base(path)) { // os.Root refuses links that are absolute
		dir.Close()
		if path, err = t.walk(path, follow, func(string, bool) bool { return true }); err == nil {
			dir, err = parent()
		}
	}
	if failed := (*os.PathError)(nil); errors.As(err, &failed) {
		return failed.Err // the caller names the path
	}
	defer dir.Close()
	return call(int(dir.Fd()), cmp.Or(programs.Base(path), "."))
}

// do is at, with an error that says what was tried.
func (t Tree) do(op, path string, follow bool, call func(dir int, path string) error) error {
	if err := t.at(path, follow, call); err != nil {
		return &os.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// walk follows a path from the root on, its last element only if that is wanted, and returns where it leads: a path free of
// symlinks. Each directory and symlink on the way is shown to visit, and whether it is the end, until that returns false.
func (t Tree) walk(path string, follow bool, visit func(at string, end bool) bool) (string, error) {
	readlink := t.Readlink
	if !t.Own() {
		readlink = func(path string) (string, error) { return t.root.Readlink("." + path) }
	}
	at, todo := "/", strings.Split(path, "/")
	for links := 0; ; {
		todo = slices.DeleteFunc(todo, func(name string) bool { return name == "" || name == "." })
		if !visit(at, len(todo) == 0) || len(todo) == 0 {
			return at, nil
		}
		next := programs.Join(at, todo[0])
		if todo = todo[1:]; programs.Base(next) == ".." {
			at = programs.Dir(at)
			continue
		}
		target := ""
		if follow || len(todo) > 0 {
			target, _ = readlink(next) // what is wrong with the path shows when it is used
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", &os.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
		}
		if !visit(next, false) {
			return next, nil
		}
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
}

// Open opens a file for reading. It fails for anything but a regular file, and never blocks.
func (t Tree) Open(path string) (*os.File, error) {
	fd, err := t.open(path, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &os.PathError{Op: "read", Path: path, Err: cmp.Or(err, error(unix.EACCES))}
	}
	return f, nil
}

func (t Tree) open(path string, flags int) (fd int, err error) {
	if !t.Own() {
		flags |= unix.O_NOFOLLOW // somebody may have put a symlink there since
	}
	err = t.do("open", path, true, func(dir int, path string) (err error) {
		fd, err = unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// Stat is stat(2).
func (t Tree) Stat(path string) (unix.Stat_t, error) { return t.stat(path, true) }

// Lstat is lstat(2).
func (t Tree) Lstat(path string) (unix.Stat_t, error) { return t.stat(path, false) }

func (t Tree) stat(path string, follow bool) (st unix.Stat_t, err error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if follow && t.Own() {
		flags = 0
	}
	err = t.at(path, follow, func(dir int, path string) error { return unix.Fstatat(dir, path, &st, flags) })
	return st, err
}

// IsLink reports whether a path is a symlink.
func (t Tree) IsLink(path string) bool {
	st, err := t.Lstat(path)
	return err == nil && IsLink(st)
}

// IsLink reports whether lstat(2) returned this of a symlink.
func IsLink(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFLNK }

// Readlink returns the content of a symlink. Some file systems have empty ones.
func (t Tree) Readlink(path string) (target string, err error) {
	err = t.at(path, false, func(dir int, path string) error {
		// A buffer of PATH_MAX would make the stack grow, which costs a wrapped call ten page faults.
		for buf := make([]byte, 256); ; buf = make([]byte, 2*len(buf)) {
			if n, err := unix.Readlinkat(dir, path, buf); err != nil || n < len(buf) {
				target = string(buf[:max(n, 0)])
				return err
			}
		}
	})
	return target, err
}

// Scan shows the names in a directory to visit until that returns false. It reads a few of them at a time, for anybody may have put
// any number there.
func (t Tree) Scan(dir string, visit func(name string) bool) error {
	fd, err := t.open(dir, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		if n <= 0 {
			return err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if !visit(name) {
				return nil
			}
		}
	}
}

// Access reports whether the effective user may do this, as access(2) would for the real one.
func (t Tree) Access(path string, mode uint32) error {
	return t.do("access", path, true, func(dir int, path string) error { return unix.Faccessat(dir, path, mode, unix.AT_EACCESS) })
}

// ReadOnly reports whether a path is known to be in a file system that is mounted read-only.
func (t Tree) ReadOnly(path string) bool {
	var fs unix.Statfs_t
	return t.Own() && unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

// Pause calls Step.
func (t Tree) Pause(op, path string) error {
	if t.Step == nil {
		return nil
	}
	return t.Step(op, path)
}
