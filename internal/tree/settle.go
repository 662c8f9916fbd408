// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Settle follows a path and returns where it leads, free of symlinks. exposed is the first thing on the way by which
// another user could make it lead elsewhere, or that other users could change, as Exposed returns it; "" if there is
// none. Then whatever is done with end is done with the file that was looked at.
//
// Unlike Exposed it accepts a directory of others, or one that is open to all, in a file system that is mounted
// read-only, such as a volume that an init container has filled: nobody can put a file there, and whose the present
// one is can be seen. It does not accept a path at which there is nothing.
func (t Tree) Settle(path string) (end, exposed string, err error) {
	by, err := t.trusted()
	if err != nil {
		return "", path, err
	}
	absolute, err := Absolute(path)
	if err != nil {
		return "", path, err
	}
	at := "/"
	left := routeOf(absolute)
	for {
		s, err := t.see(at)
		if err != nil {
			return at, "", PathError("lstat", at, err)
		}
		if t.unsettled(at, s, by, left.ended()) {
			return at, at, nil
		}
		switch {
		case IsLink(s.stat):
			err := left.through(s.target)
			if err != nil {
				return at, "", PathError("follow", path, err)
			}
			at = programs.Dir(at)
			if strings.HasPrefix(s.target, "/") {
				at = "/"
			}
		case left.ended():
			return at, "", nil
		default:
			at = beneath(at, left.next())
		}
	}
}

// beneath is the path of an entry of a directory whose path is free of symlinks.
func beneath(dir, name string) string {
	if name == ".." {
		return programs.Dir(dir)
	}
	return programs.Join(dir, name)
}

// seen is what one look at a path showed: all of it is about the same file, whoever puts another in its place
// meanwhile.
type seen struct {
	stat     unix.Stat_t
	target   string // of a symlink
	readOnly bool   // it is in a file system that is mounted read-only
}

// see looks at a path, and does not follow a symlink there.
func (t Tree) see(path string) (s seen, err error) {
	err = t.lookAt(path, func(fd int, st unix.Stat_t) error {
		s.stat = st
		var fs unix.Statfs_t
		err := unix.Fstatfs(fd, &fs)
		s.readOnly = err == nil && fs.Flags&unix.ST_RDONLY != 0
		if !IsLink(st) {
			return nil
		}
		s.target, err = readlinkat(fd, "")
		return err
	})
	return s, err
}

// unsettled reports whether somebody who is not trusted could change what was seen at a path, or what is in it.
func (t Tree) unsettled(path string, s seen, by trusted, end bool) bool {
	owned := by.own(s.stat)
	directory := IsDir(s.stat)
	sticky := directory && IsSticky(s.stat)
	switch {
	case s.readOnly:
		return !owned && (end || !directory)
	case !owned:
		return true
	case sticky && !end:
		return false
	default:
		return by.openToOthers(s.stat) || t.openByACL(path, s.stat)
	}
}
