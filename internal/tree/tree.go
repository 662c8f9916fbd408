// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree looks at and changes the files below a root: the process' own, or that of an image that is being built.
package tree

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

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

// Close releases the tree's descriptor.
func (t Tree) Close() {
	if t.root != nil {
		t.root.Close()
	}
}

// Own reports whether this is the process' own tree, in which programs can be run.
func (t Tree) Own() bool { return t.root == nil }

// resolve returns the path, free of symlinks and relative to the root, that a path in another root leads to. os.Root follows no
// absolute link. The last element is followed only if that is wanted.
func (t Tree) resolve(path string, last bool) (string, error) {
	resolved := "."
	todo := strings.Split(path, "/")
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			resolved = programs.Dir(resolved)
			continue
		}
		next := programs.Join(resolved, name)
		target, err := t.root.Readlink(next)
		if err != nil || len(todo) == 0 && !last { // what is wrong with the path shows when it is used
			resolved = next
			continue
		}
		if links++; links > maxLinks {
			return "", unix.ELOOP
		}
		if strings.HasPrefix(target, "/") {
			resolved = "."
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return resolved, nil
}

// in runs an operation on a path in another root: as it stands or, if os.Root refuses that, resolved.
func (t Tree) in(path string, last bool, operation func(path string) error) error {
	err := operation(programs.Join(".", strings.TrimLeft(path, "/")))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	resolved, failed := t.resolve(path, last)
	if failed == nil {
		failed = operation(resolved)
	}
	return failed
}

// Open opens a file for reading. It fails for anything but a regular file, and never blocks.
func (t Tree) Open(path string) (*os.File, error) {
	f, err := t.openFile(path, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: cmp.Or(err, errors.New("not a regular file"))}
	}
	return f, nil
}

func (t Tree) openFile(path string, flags int) (f *os.File, err error) {
	if t.Own() {
		return os.OpenFile(path, os.O_RDONLY|flags, 0)
	}
	err = t.in(path, true, func(path string) (err error) {
		f, err = t.root.OpenFile(path, os.O_RDONLY|flags, 0)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: plain(err)}
	}
	return f, nil
}

// Stat is stat(2).
func (t Tree) Stat(path string) (unix.Stat_t, error) { return t.stat(path, true) }

// Lstat is lstat(2).
func (t Tree) Lstat(path string) (unix.Stat_t, error) { return t.stat(path, false) }

func (t Tree) stat(path string, follow bool) (st unix.Stat_t, err error) {
	if t.Own() {
		flags := unix.AT_SYMLINK_NOFOLLOW
		if follow {
			flags = 0
		}
		err = unix.Fstatat(unix.AT_FDCWD, path, &st, flags)
		return st, err
	}
	var info os.FileInfo
	err = t.in(path, follow, func(path string) (err error) {
		if info, err = t.root.Lstat(path); follow && err == nil && info.Mode().Type() == fs.ModeSymlink {
			info, err = t.root.Stat(path)
		}
		return err
	})
	if err != nil {
		return st, plain(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	return unix.Stat_t{Dev: s.Dev, Ino: s.Ino, Mode: s.Mode, Uid: s.Uid, Gid: s.Gid, Mtim: unix.Timespec(s.Mtim)}, nil
}

// plain returns the errno of an error of package os, as the system call would have returned it.
func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// IsLink reports whether a path is a symlink.
func (t Tree) IsLink(path string) bool {
	st, err := t.Lstat(path)
	return err == nil && IsLink(st)
}

// IsLink reports whether lstat(2) returned this of a symlink.
func IsLink(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFLNK }

// Readlink returns the content of a symlink. Some file systems have empty ones.
func (t Tree) Readlink(path string) (string, error) {
	if !t.Own() {
		var target string
		err := t.in(path, false, func(path string) (err error) {
			target, err = t.root.Readlink(path)
			return err
		})
		return target, plain(err)
	}
	// A buffer of PATH_MAX would make the stack grow, which costs a wrapped call ten page faults.
	for buf := make([]byte, 256); ; buf = make([]byte, 2*len(buf)) {
		if n, err := unix.Readlink(path, buf); err != nil || n < len(buf) {
			return string(buf[:max(n, 0)]), err
		}
	}
}

// List returns the names in a directory, none if it cannot be read.
func (t Tree) List(dir string) []string {
	f, err := t.openFile(dir, unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// Access reports whether the effective user may do this, as access(2) would for the real one. In another tree the attempt
// has to show it.
func (t Tree) Access(path string, mode uint32) error {
	if !t.Own() {
		return nil
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// ReadOnly reports whether a path is known to be in a file system that is mounted read-only.
func (t Tree) ReadOnly(path string) bool {
	var fs unix.Statfs_t
	return t.Own() && unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

func (t Tree) step(op, path string) error {
	if t.Step == nil {
		return nil
	}
	return t.Step(op, path)
}

// Pause is a step of its own, before something is read that others may be changing.
func (t Tree) Pause(op, path string) error { return t.step(op, path) }
