// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// change runs a system call that changes a directory entry: own in the process' own tree, other in another one, where the
// path is free of symlinks. old is for the error: what the entry is made of, "" if of nothing.
func (t Tree) change(op, old, path string, own func() error, other func(path string) error) error {
	err := t.step(op, path)
	if err == nil && t.Own() {
		err = own()
	} else if err == nil {
		err = t.in(path, false, other)
	}
	switch link := (*os.LinkError)(nil); {
	case err == nil:
		return nil
	case errors.As(err, &link):
		err = link.Err
	default:
		err = plain(err)
	}
	if old == "" {
		return &os.PathError{Op: op, Path: path, Err: err}
	}
	return &os.LinkError{Op: op, Old: old, New: path, Err: err}
}

// Symlink makes a symlink.
func (t Tree) Symlink(target, path string) error {
	return t.change("symlink", target, path, func() error { return unix.Symlink(target, path) },
		func(path string) error { return t.root.Symlink(target, path) })
}

// Unlink removes a directory entry that is not a directory.
func (t Tree) Unlink(path string) error {
	return t.change("unlink", "", path, func() error { return unix.Unlink(path) }, func(path string) error {
		if info, err := t.root.Lstat(path); err == nil && info.IsDir() {
			return unix.EISDIR // Remove would remove an empty one
		}
		return t.root.Remove(path)
	})
}

// Rename renames an entry within one directory.
func (t Tree) Rename(from, to string) error {
	return t.change("rename", from, to, func() error { return unix.Rename(from, to) },
		func(to string) error { return t.root.Rename(programs.Join(programs.Dir(to), programs.Base(from)), to) })
}

// Link gives a file another name in its directory.
func (t Tree) Link(file, path string) error {
	return t.change("link", file, path, func() error { return unix.Link(file, path) },
		func(path string) error {
			return t.root.Link(programs.Join(programs.Dir(path), programs.Base(file)), path)
		})
}

// Create makes a new executable file.
func (t Tree) Create(path string) (f *os.File, err error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	err = t.change("create", "", path, func() (err error) {
		f, err = os.OpenFile(path, flags, 0o755)
		return err
	}, func(path string) (err error) {
		f, err = t.root.OpenFile(path, flags, 0o755)
		return err
	})
	return f, err
}

// Replace makes a link, new or not, point to a target with one rename(2). The caller holds the directory's lock, so what
// stands under the temporary name was left behind by a process that was killed, and is removed. If it is not a symlink, it
// is a user's, and another name is taken.
func (t Tree) Replace(link, target string) error {
	return t.replace(link, target, Temporary(link, "new"), ownTemporary(link))
}

// ReplaceUnlocked does the same for a caller that does not hold the lock, under a temporary name of this process. Where others
// can write, somebody may have taken that one; nobody can foresee the other.
func (t Tree) ReplaceUnlocked(link, target string) error {
	return t.replace(link, target, ownTemporary(link), Temporary(link, strconv.FormatInt(time.Now().UnixNano(), 36)))
}

// Temporary returns the name, in the same directory, under which the successor of a link or file is made before it is
// renamed.
func Temporary(link, suffix string) string {
	return programs.Join(programs.Dir(link), "."+programs.Base(link)+"."+suffix)
}

func ownTemporary(link string) string { return Temporary(link, strconv.Itoa(os.Getpid())) }

func (t Tree) replace(link, target string, temporaries ...string) error {
	var err error
	for _, temporary := range temporaries {
		if err = t.Symlink(target, temporary); errors.Is(err, unix.EEXIST) {
			if !t.IsLink(temporary) || t.Unlink(temporary) != nil {
				continue
			}
			err = t.Symlink(target, temporary)
		}
		if err != nil {
			return err
		}
		if err = t.Rename(temporary, link); err != nil {
			_ = t.Unlink(temporary) // the first error is the one to report
		}
		return err
	}
	return err
}

// ErrBusy means that another process is changing the links, or holds the lock for another reason: whoever can read a directory
// can lock it.
var ErrBusy = errors.New("another process has locked the directory")

// TryLock takes the lock of a directory, without which no link in it is changed. It is released by unlock, by execve(2) at the
// latest. The error wraps ErrBusy, or says why there can be no lock.
func (t Tree) TryLock(dir string) (unlock func(), err error) {
	if err := t.step("lock", dir); err != nil {
		return nil, err
	}
	fd := -1
	if t.Own() {
		if fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
		unlock = func() { unix.Close(fd) }
	} else {
		f, err := t.openFile(dir, unix.O_DIRECTORY)
		if err != nil {
			return nil, err
		}
		fd, unlock = int(f.Fd()), func() { f.Close() }
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return unlock, nil
	}
	unlock()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrBusy
	}
	return nil, &os.PathError{Op: "flock", Path: dir, Err: err}
}

// Lock waits for the lock of a directory, for ten seconds at most.
func (t Tree) Lock(dir string) (unlock func(), err error) {
	for range 500 {
		if unlock, err = t.TryLock(dir); !errors.Is(err, ErrBusy) {
			return unlock, err
		}
		if t.Step == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil, err
}

// Content returns what a link must contain to point to a file: its name alone if they are in the same directory.
func (t Tree) Content(link, file string) (string, error) {
	if t.SameFile(programs.Dir(link), programs.Dir(file)) {
		return programs.Base(file), nil
	}
	return Absolute(file)
}

// Absolute puts the working directory before a relative path, and changes nothing else.
func Absolute(path string) (string, error) {
	if path != "" && path[0] == '/' {
		return path, nil
	}
	cwd, err := unix.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	return programs.Join(cwd, path), nil
}

// Point makes a link point to a file with one rename(2). The caller holds the directory's lock.
func (t Tree) Point(link, file string) error {
	content, err := t.Content(link, file)
	if err != nil {
		return err
	}
	return t.Replace(link, content)
}
