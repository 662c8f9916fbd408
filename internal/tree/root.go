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

// ErrMisled means that there is a symlink in a path that users other than root and the caller can change.
var ErrMisled = errors.New("another user could make that symlink lead elsewhere; name the directory itself")

// Open opens the tree below a directory. A path in it resolves as chroot(2) would have it, and never leads outside:
// os.Root sees to that. It needs no capability.
//
// The directory may be another user's, or in another user's. Then no symlink of that user is followed on the way to it:
// it could lead to the root of the system.
func Open(dir string) (Tree, error) {
	exposed := Tree{}.Exposed(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, PathError("open", dir, bare(err))
	}
	t := Tree{root: root}
	if exposed != "" {
		err = t.reachedBy(dir, "/")
	}
	if err != nil {
		root.Close()
		return Tree{}, err
	}
	return t, nil
}

// reachedBy checks that a path of the process' own tree leads to a directory of this tree, whoever changes what others
// can change.
func (t Tree) reachedBy(path, dir string) error {
	want, err := t.Stat(dir)
	if err != nil {
		return PathError("stat", path, err)
	}
	st, at, err := carefulStat(path)
	if err == nil && IDOf(st) != IDOf(want) {
		err = ErrMisled
	}
	if err != nil {
		return fmt.Errorf("%q: %w", at, err)
	}
	return nil
}

// CheckLinks fails if a path of the process' own tree passes a symlink that users other than root and the caller can
// change, or passed one when it was pinned.
func (t Tree) CheckLinks(path string) error {
	if !t.Own() || (Tree{}).Exposed(path) == "" {
		return nil
	}
	return t.reachedBy(path, path)
}

// carefulStat returns what stat(2) says of a path, and where it leads or fails. It follows no symlink that users other
// than root and the caller could have put there. It opens one element after the other, so nobody can put anything in
// between.
func carefulStat(path string) (st unix.Stat_t, at string, err error) {
	by, err := Tree{}.trusted()
	if err != nil {
		return st, path, err
	}
	w := walker{by: by, fd: unix.AT_FDCWD, at: "."}
	defer w.close()
	if strings.HasPrefix(path, "/") {
		w.at = "/"
	}
	err = w.step(w.at)
	left := routeOf(path)
	for err == nil && !left.ended() {
		name := left.next()
		target, isLink := w.link(name)
		if !isLink {
			w.at = programs.Join(w.at, name)
			err = w.step(name)
			continue
		}
		if w.others {
			return w.st, programs.Join(w.at, name), ErrMisled
		}
		err = left.through(target)
		if err == nil && strings.HasPrefix(target, "/") {
			w.at = "/"
			err = w.step("/")
		}
	}
	return w.st, w.at, err
}

// walker is somewhere on a path, by a descriptor.
type walker struct {
	by     trusted
	fd     int
	at     string
	st     unix.Stat_t
	others bool // could have put there what comes next
	shared bool // others could have put a symlink there, but no directory of somebody else
}

// step goes to an entry of the directory, which is no symlink.
func (w *walker) step(name string) error {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC
	next, err := unix.Openat(w.fd, name, flags, 0)
	if err != nil {
		return err
	}
	w.close()
	w.fd = next
	err = unix.Fstat(next, &w.st)
	open := w.by.openToOthers(w.st)
	w.shared = open && IsSticky(w.st)
	renamable := open && !w.shared // what is in it, by anybody
	if err != nil || !w.by.own(w.st) || renamable {
		w.others = true
	}
	return err
}

// link returns what a symlink in the directory contains, and notes whether others could have put it there. One that
// belongs to them counts as put there.
func (w *walker) link(name string) (target string, isLink bool) {
	var st unix.Stat_t
	err := unix.Fstatat(w.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || !IsLink(st) {
		return "", false // what is wrong shows when it is opened
	}
	if w.shared || !w.by.own(st) {
		w.others = true
	}
	target, err = readlinkat(w.fd, name)
	return target, err == nil
}

func (w *walker) close() {
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
}

// Close closes what Open has opened. Of the process' own tree it does nothing.
func (t Tree) Close() error {
	if t.root == nil {
		return nil
	}
	return t.root.Close()
}
