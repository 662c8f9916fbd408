// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"

	"golang.org/x/sys/unix"
)

// A pin is a directory that was opened once.
type pin struct {
	dir   string // its path, without a slash at the end
	fd    int
	other *pin
}

// Pin returns a tree in which a path with this directory stays in the directory that it leads to now: whoever renames
// that, or exchanges something on the way to it, changes nothing for this tree. So what was found out about an entry
// is found out about the one that is then replaced. It holds until unpin is called.
func (t Tree) Pin(dir string) (pinned Tree, unpin func(), err error) {
	fd, err := t.open(dir, true, unix.O_DIRECTORY)
	if err != nil {
		return t, nil, err
	}
	t.pinned = &pin{dir: strings.TrimSuffix(dir, "/"), fd: fd, other: t.pinned}
	return t, func() { unix.Close(fd) }, nil
}

// Unpinned returns the tree without pins. A path then leads where it leads for everybody else.
func (t Tree) Unpinned() Tree {
	t.pinned = nil
	return t
}

// pinnedAt returns the pinned directory that a path is in, or is, and the name of the path there. It returns nil if
// there is none.
func (t Tree) pinnedAt(path string) (dir *pin, name string) {
	for p := t.pinned; p != nil; p = p.other {
		if path == p.dir || path == p.dir+"/" {
			return p, "."
		}
		name, inside := strings.CutPrefix(path, p.dir+"/")
		if inside && name != "" && name != "." && name != ".." && !strings.Contains(name, "/") {
			return p, name
		}
	}
	return nil, ""
}
