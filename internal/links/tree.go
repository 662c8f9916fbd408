// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package links decides where the six names of iptables lead: it follows symlinks, replaces the one that a decision
// replaces, and keeps the container's memory of its backend.
//
// In the layout that install makes, the names point to one link beside them, the switch, and that points to the wrapper:
//
//	iptables         -> iptables-current
//	iptables-restore -> iptables-current
//	...
//	iptables-current -> iptables-wrapper
//
// A decision replaces the switch by a link to a multi-call program with one rename(2), so all six names change at the same
// instant, and a kill at any instant leaves them all old or all new.
package links

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Tree is a file system as seen from its root. The zero Tree is the process' own. Paths are absolute; in the process' own
// tree they may be relative too.
type Tree struct {
	root int // a descriptor of another root; 0: the process' own

	// step, if set, is called before each system call that changes something, takes a lock or reads the memory. Tests make
	// it fail there, kill the caller, or let another one go first.
	step func(op, path string) error
}

// OpenTree opens the tree below a directory. The kernel resolves every path in it as chroot(2) would, and follows no magic
// link of a /proc (openat2(2), since Linux 5.6; otherwise walk), so nothing outside can be reached. It needs no capability.
func OpenTree(dir string) (Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Tree{}, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return Tree{root: fd}, nil
}

// Close releases the tree's descriptor.
func (t Tree) Close() {
	if t.root != 0 {
		unix.Close(t.root)
	}
}

// Own reports whether this is the process' own tree, in which programs can be run.
func (t Tree) Own() bool { return t.root == 0 }

// open returns a descriptor. Flags are those of open(2).
func (t Tree) open(path string, flags int) (int, error) {
	if t.Own() {
		return unix.Open(path, flags|unix.O_CLOEXEC, 0)
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(t.root, path, &how)
	if err == unix.ENOSYS || err == unix.EAGAIN { // EAGAIN: anything was renamed or mounted while a ".." was resolved
		return t.walk(path, flags)
	}
	return fd, err
}

// Open opens a file for reading. It fails for anything but a regular file, and never blocks.
func (t Tree) Open(path string) (*os.File, error) {
	fd, err := t.open(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("not a regular file")
	}
	if err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Stat is stat(2).
func (t Tree) Stat(path string) (unix.Stat_t, error) { return t.stat(path, 0, 0) }

// Lstat is lstat(2).
func (t Tree) Lstat(path string) (unix.Stat_t, error) {
	return t.stat(path, unix.AT_SYMLINK_NOFOLLOW, unix.O_NOFOLLOW)
}

func (t Tree) stat(path string, flags, openFlags int) (st unix.Stat_t, err error) {
	dir := unix.AT_FDCWD
	if !t.Own() {
		if dir, err = t.open(path, unix.O_PATH|openFlags); err != nil {
			return st, err
		}
		defer unix.Close(dir)
		path, flags = "", unix.AT_EMPTY_PATH
	}
	err = unix.Fstatat(dir, path, &st, flags)
	return st, err
}

// IsLink reports whether a path is a symlink.
func (t Tree) IsLink(path string) bool {
	st, err := t.Lstat(path)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// Readlink returns the content of a symlink.
func (t Tree) Readlink(path string) (string, error) {
	if t.Own() {
		return readlinkat(unix.AT_FDCWD, path)
	}
	fd, err := t.open(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return readlinkat(fd, "")
}

func readlinkat(dir int, path string) (string, error) {
	// A buffer of PATH_MAX would make the stack grow, which costs a wrapped call ten page faults.
	for buf := make([]byte, 256); ; buf = make([]byte, 2*len(buf)) {
		if n, err := unix.Readlinkat(dir, path, buf); err != nil || n < len(buf) {
			return string(buf[:max(n, 0)]), err
		}
	}
}

func (t Tree) stop(op, path string) error {
	if t.step == nil {
		return nil
	}
	return t.step(op, path)
}

// change runs a system call that changes a directory entry, given the directory and the entry's name. old is for the error:
// what the entry is made of, "" if of nothing.
func (t Tree) change(op, old, path string, call func(dir int, name string) error) error {
	err := t.stop(op, path)
	if err == nil && t.Own() {
		err = call(unix.AT_FDCWD, path)
	} else if err == nil {
		err = t.changeIn(path, call)
	}
	switch {
	case err == nil:
		return nil
	case old == "":
		return &os.PathError{Op: op, Path: path, Err: err}
	default:
		return &os.LinkError{Op: op, Old: old, New: path, Err: err}
	}
}

func (t Tree) changeIn(path string, call func(dir int, name string) error) error {
	dir, err := t.open(programs.Dir(path), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if name := programs.Base(path); name != "" && name != "." && name != ".." {
		return call(dir, name)
	}
	return unix.EINVAL
}

// neighbour is how change's system calls name another entry of the same directory.
func (t Tree) neighbour(path string) string {
	if t.Own() {
		return path
	}
	return programs.Base(path)
}

// Symlink makes a symlink.
func (t Tree) Symlink(target, path string) error {
	return t.change("symlink", target, path, func(dir int, name string) error { return unix.Symlinkat(target, dir, name) })
}

// Unlink removes a directory entry that is not a directory.
func (t Tree) Unlink(path string) error {
	return t.change("unlink", "", path, func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
}

// Rename renames an entry within one directory.
func (t Tree) Rename(from, to string) error {
	return t.change("rename", from, to, func(dir int, name string) error { return unix.Renameat(dir, t.neighbour(from), dir, name) })
}

// Link gives a file another name in its directory.
func (t Tree) Link(file, path string) error {
	return t.change("link", file, path, func(dir int, name string) error { return unix.Linkat(dir, t.neighbour(file), dir, name, 0) })
}

// Create makes a new executable file.
func (t Tree) Create(path string) (*os.File, error) {
	fd := -1
	err := t.change("create", "", path, func(dir int, name string) (err error) {
		fd, err = unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o755)
		return err
	})
	return os.NewFile(uintptr(fd), path), err // nil for -1
}
