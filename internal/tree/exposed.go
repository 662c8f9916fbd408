// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Overflow is the user to whom files of unmapped users seem to belong, unless somebody changed
// /proc/sys/kernel/overflowuid. See user_namespaces(7).
const Overflow = 65534

// trusted are the users and groups whose files nobody else can change.
type trusted struct {
	users  []uint32
	groups []uint32
}

// root is the superuser, and the group of that name.
func root() trusted { return trusted{users: []uint32{0}, groups: []uint32{0}} }

// own reports whether a file belongs to one of those who are trusted.
func (by trusted) own(st unix.Stat_t) bool { return slices.Contains(by.users, st.Uid) }

// openToOthers reports whether somebody who is not trusted can change a file, or what is in a directory, by its mode. A
// file is suspect if any group can write it: many containers run as a user other than root who is in group root. The
// mode of a symlink says nothing, and nobody can change one.
func (by trusted) openToOthers(st unix.Stat_t) bool {
	if IsLink(st) {
		return false
	}
	group := st.Mode&unix.S_IWGRP != 0
	if IsDir(st) && slices.Contains(by.groups, st.Gid) {
		group = false
	}
	return group || st.Mode&unix.S_IWOTH != 0
}

// trusted are those who count in a tree: root, the caller and, in another tree, the owner of its top. To a caller
// without an ID in its user namespace, everybody's files seem its own, so that one does not count.
func (t Tree) trusted() (trusted, error) {
	by := root()
	caller := uint32(os.Geteuid())
	if caller != Overflow {
		by.users = append(by.users, caller)
	}
	if t.Own() {
		return by, nil
	}
	top, err := t.Stat("/")
	by.users = append(by.users, top.Uid)
	by.groups = append(by.groups, top.Gid)
	return by, err
}

// Exposed returns the first thing on the way to a file or directory, that one included, by which another user could
// change what is found there: a directory, a symlink, or the file itself, that another user owns or can write. It
// returns "" if there is none.
//
// The owners that count are root, the caller and, in another tree, the owner of its top. A directory on the way may
// be open to all if it is sticky, as /tmp is: there, others cannot rename what is not theirs. But they can make what
// does not exist yet.
//
// As long as a path is not exposed, what was found out about it cannot be made wrong by anybody who does not count.
func (t Tree) Exposed(path string) string {
	by, err := t.trusted()
	if err != nil {
		return path
	}
	return t.exposed(path, by)
}

// Rewritable reports whether somebody who does not count, see Exposed, can change a file of which stat(2) returned
// this.
func (t Tree) Rewritable(st unix.Stat_t) bool {
	by, err := t.trusted()
	return err != nil || !by.own(st) || by.openToOthers(st)
}

// RootsAlone returns what Exposed returns if no owner counts but root.
func (t Tree) RootsAlone(path string) string { return t.exposed(path, root()) }

func (t Tree) exposed(path string, by trusted) string {
	absolute, err := Absolute(path)
	if err != nil {
		return path
	}
	exposed, shared := "", ""
	visit := func(at string, end bool) bool {
		st, err := t.Lstat(at)
		if IsNotExist(err) {
			exposed = shared // elsewhere only those who count can make it
			return false
		}
		open := by.openToOthers(st) || t.openByACL(at, st)
		sticky := IsSticky(st)
		switch {
		case err != nil, !by.own(st), open && (end || !sticky):
			exposed = at
		case open:
			shared = at
		case !IsLink(st):
			shared = ""
		}
		return exposed == ""
	}
	_, err = t.walk(absolute, true, visit)
	if err != nil {
		return path
	}
	return exposed
}

// openByACL reports whether an access control list may let others write to a directory, see acl(5). The bits of the
// group show what it allows at most, whichever the group is.
func (t Tree) openByACL(dir string, st unix.Stat_t) bool {
	if !IsDir(st) || st.Mode&unix.S_IWGRP == 0 {
		return false
	}
	fd, err := t.open(dir, false, unix.O_DIRECTORY)
	if err != nil {
		return true // for all that is known
	}
	defer unix.Close(fd)
	size, err := unix.Fgetxattr(fd, "system.posix_acl_access", nil)
	return err == nil && size > 0
}
