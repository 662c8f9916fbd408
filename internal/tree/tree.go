// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree looks at and changes the files below a root: the process' own, or that of an image that is being built.
package tree

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Tree is a file system as seen from its root. The zero Tree is the process' own. Paths are absolute; in the process'
// own tree they may be relative too.
type Tree struct {
	root   *os.Root // another root; nil: the process' own
	pinned *pin     // directories that stay what they were

	// Step, if set, is called before each system call that changes something, takes a lock, reads the memory or starts
	// a program of which doctor knows whose it is. Tests make it fail there, kill the caller, or let another one go
	// first.
	Step func(op, path string) error

	// PID, if set, is in the temporary names that this process would have. Tests play several processes in one.
	PID int
}

// Own reports whether this is the process' own tree, in which programs can be run.
func (t Tree) Own() bool { return t.root == nil }

// An atCall makes a system call with a directory's descriptor and a path from there, such as openat(2).
type atCall func(dir int, path string) error

// at makes a system call with a path. In another root, and in a pinned directory, the call gets an open directory and
// a name in it.
//
// follow says whether a symlink of that name is to be followed. In the process' own tree the system call itself does
// that. In another root it is done here, and the system call must not.
func (t Tree) at(path string, follow bool, call atCall) error {
	for range maxLinks {
		dir, name := t.pinnedAt(path)
		switch {
		case dir == nil && t.Own():
			return call(unix.AT_FDCWD, path)
		case dir == nil:
			return t.below(path, follow, call)
		case t.Own() || !follow: // in the process' own tree, the kernel follows a symlink
			return call(dir.fd, name)
		}
		target, _ := readlinkat(dir.fd, name)
		if target == "" {
			return call(dir.fd, name)
		}
		next, err := beside(path, target)
		if err != nil {
			return err
		}
		path = next
	}
	return unix.ELOOP
}

// below makes a system call with a path in another root.
func (t Tree) below(path string, follow bool, call atCall) error {
	end, err := t.walk(path, follow, func(string, bool) bool { return true })
	if err != nil {
		return bare(err)
	}
	// os.Root keeps this inside, whatever has become of the path since.
	dir, err := t.root.OpenFile("."+programs.Dir(end), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return bare(err)
	}
	defer dir.Close()
	return call(int(dir.Fd()), cmp.Or(programs.Base(end), "."))
}

// do is at, with an error that says what was tried.
func (t Tree) do(op, path string, follow bool, call atCall) error {
	return PathError(op, path, t.at(path, follow, call))
}

// walk follows a path from the root on, its last element only if that is wanted, and returns where it leads: a path
// free of symlinks. Each directory and symlink on the way is shown to visit, and whether it is the end, until that
// returns false.
func (t Tree) walk(path string, follow bool, visit func(at string, end bool) bool) (string, error) {
	at := "/"
	left := routeOf(path)
	for {
		if !visit(at, left.ended()) || left.ended() {
			return at, nil
		}
		name := left.next()
		if name == ".." {
			at = programs.Dir(at)
			continue
		}
		next := programs.Join(at, name)
		target := ""
		if follow || !left.ended() {
			target = t.target(next)
		}
		if target == "" {
			at = next
			continue
		}
		err := left.through(target)
		if err != nil {
			return "", PathError("follow", path, err)
		}
		if !visit(next, false) {
			return next, nil
		}
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
	}
}

// target returns what a symlink contains whose path is free of other symlinks, "" if it is none. What else is wrong
// with a path shows when it is used.
func (t Tree) target(path string) string {
	if t.Own() {
		target, _ := t.Readlink(path)
		return target
	}
	target, _ := t.root.Readlink("." + path)
	return target
}

// PathError is an error of a system call with a path, nil if there is none. The path forges no line of a message.
func PathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: Printable(path), Err: err}
}

// bare returns what went wrong without the path, which the caller adds.
func bare(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// Printable returns a path, or what a symlink contains, in quotes if it has characters that are not for printing:
// anybody can make a symlink whose target forges lines of a message.
func Printable(path string) string {
	for _, c := range []byte(path) {
		if c < ' ' || c >= 0x7f {
			return strconv.Quote(path)
		}
	}
	return path
}

// Pause calls Step.
func (t Tree) Pause(op, path string) error {
	if t.Step == nil {
		return nil
	}
	return t.Step(op, path)
}
