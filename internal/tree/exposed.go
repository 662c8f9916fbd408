// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Exposed returns the first directory, on the way to one and in every symlink on it, in which another user could replace what
// leads there, "" if there is none. The owners that count are root, the caller and, in another tree, the owner of its top. A
// directory on the way may be open to all if it is sticky, as /tmp is: there, others cannot rename what is not theirs.
func (t Tree) Exposed(dir string) string {
	const groupWrites, othersWrite = 0o020, 0o002
	path, err := Absolute(dir)
	if err != nil {
		return dir
	}
	top, err := t.Stat("/")
	if err != nil {
		return "/"
	}
	safe := func(uid uint32) bool {
		return uid == 0 || int(uid) == os.Geteuid() || !t.Own() && uid == top.Uid
	}
	at, todo := "/", strings.Split(path, "/")
	for links := 0; ; {
		st, err := t.Lstat(at)
		if IsNotExist(err) {
			return "" // what is missing shows later
		}
		open := st.Mode&othersWrite != 0 || st.Mode&groupWrites != 0 && st.Gid != 0 && (t.Own() || st.Gid != top.Gid)
		if err != nil || !safe(st.Uid) || open && (len(todo) == 0 || st.Mode&unix.S_ISVTX == 0) {
			return at
		}
		for len(todo) > 0 && (todo[0] == "" || todo[0] == ".") {
			todo = todo[1:]
		}
		if len(todo) == 0 {
			if open {
				return at
			}
			return ""
		}
		next := programs.Join(at, todo[0])
		todo = todo[1:]
		if programs.Base(next) == ".." {
			at = programs.Dir(at)
			continue
		}
		st, err = t.Lstat(next)
		if err == nil && !safe(st.Uid) {
			return next
		}
		if at = next; err == nil && IsLink(st) {
			target, err := t.Target(next)
			if links++; err != nil || links > maxLinks {
				return next
			}
			at, todo = "/", append(strings.Split(target, "/"), todo...)
		}
	}
}
