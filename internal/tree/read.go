// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a file for reading. It fails for anything but a regular file, and never blocks.
func (t Tree) Open(path string) (*os.File, error) { return t.regular(path, true) }

// OpenEntry is Open, but fails for a symlink too.
func (t Tree) OpenEntry(path string) (*os.File, error) { return t.regular(path, false) }

func (t Tree) regular(path string, follow bool) (*os.File, error) {
	fd, err := t.open(path, follow, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = unix.EACCES
	}
	if err != nil {
		f.Close()
		return nil, PathError("read", path, bare(err))
	}
	return f, nil
}

func (t Tree) open(path string, follow bool, flags int) (fd int, err error) {
	if !follow || !t.Own() {
		// In another root, a symlink has been followed. Somebody may have put another one there since.
		flags |= unix.O_NOFOLLOW
	}
	err = t.do("open", path, follow, func(dir int, path string) (err error) {
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

// Readlink returns the content of a symlink. Some file systems have empty ones.
func (t Tree) Readlink(path string) (target string, err error) {
	err = t.at(path, false, func(dir int, path string) (err error) {
		target, err = readlinkat(dir, path)
		return err
	})
	return target, err
}

// StatLink is Lstat and Readlink of one symlink: whose it is and what it contains is about the same one, whoever puts
// another in its place meanwhile.
func (t Tree) StatLink(path string) (st unix.Stat_t, target string, err error) {
	err = t.lookAt(path, func(fd int, found unix.Stat_t) (err error) {
		st = found
		if !IsLink(st) {
			return unix.EINVAL // as readlink(2) has it
		}
		target, err = readlinkat(fd, "")
		return err
	})
	return st, target, err
}

// lookAt shows a descriptor of what is at a path, and what stat(2) says of it, to visit. A symlink is not followed, and
// the descriptor is good for no more than looking at it (O_PATH).
func (t Tree) lookAt(path string, visit func(fd int, st unix.Stat_t) error) error {
	return t.at(path, false, func(dir int, path string) error {
		fd, err := unix.Openat(dir, path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		if err != nil {
			return err
		}
		return visit(fd, st)
	})
}

// readlinkat is readlinkat(2). A buffer of PATH_MAX would make the stack grow, which costs a wrapped call ten page
// faults.
func readlinkat(dir int, path string) (string, error) {
	for buf := make([]byte, 256); ; buf = make([]byte, 2*len(buf)) {
		n, err := unix.Readlinkat(dir, path, buf)
		if err != nil {
			return "", err
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
	}
}

// Scan shows the names in a directory to visit until that returns false. It reads a few of them at a time, for
// anybody may have put any number there.
func (t Tree) Scan(dir string, visit func(name string) bool) error {
	fd, err := t.open(dir, true, unix.O_DIRECTORY)
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
	return t.do("access", path, true, func(dir int, path string) error {
		return unix.Faccessat(dir, path, mode, unix.AT_EACCESS)
	})
}

// ReadOnly reports whether a path is known to be in a file system that is mounted read-only.
func (t Tree) ReadOnly(path string) bool {
	var fs unix.Statfs_t
	return t.Own() && unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}
