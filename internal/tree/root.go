// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// ErrLed means that there is a symlink in a path that others than root and the caller can change.
var ErrLed = errors.New("another user could make that symlink lead elsewhere; name the directory itself")

// Open opens the tree below a directory. A path in it resolves as chroot(2) would have it, and never leads outside:
// os.Root sees to that. It needs no capability.
//
// The directory may be another user's, or in another user's. Then no symlink on the way to it is followed: that user
// could make it lead to the root of the system.
func Open(dir string) (Tree, error) {
	exposed := Tree{}.Exposed(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, pathError("open", dir, bare(err))
	}
	t := Tree{root: root}
	if exposed != "" {
		err = t.without(dir)
	}
	if err != nil {
		root.Close()
		return Tree{}, err
	}
	return t, nil
}

// without checks that the root of a tree is what a path leads to if no symlink is followed.
func (t Tree) without(path string) error {
	top, err := t.Stat("/")
	if err != nil {
		return pathError("stat", path, err)
	}
	st, at, err := nofollow(path)
	switch {
	case err == nil && IDOf(st) == IDOf(top):
		return nil
	case err == nil, errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		err = ErrLed
	}
	return fmt.Errorf("%q: %w", at, err)
}

// nofollow returns what stat(2) says of a path if it has no symlinks, or the part of the path that cannot be opened.
func nofollow(path string) (st unix.Stat_t, at string, err error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC
	at = "."
	if strings.HasPrefix(path, "/") {
		at = "/"
	}
	dir, err := unix.Open(at, flags, 0)
	for _, name := range elements(path) {
		if err != nil {
			return st, at, err
		}
		above := dir
		at = programs.Join(at, name)
		dir, err = unix.Openat(above, name, flags, 0)
		unix.Close(above)
	}
	if err != nil {
		return st, at, err
	}
	defer unix.Close(dir)
	return st, at, unix.Fstat(dir, &st)
}

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
