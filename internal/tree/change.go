// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// change makes a system call that changes a directory entry.
func (t Tree) change(op, path string, call atCall) error {
	if err := t.Pause(op, path); err != nil {
		return PathError(op, path, err)
	}
	return t.do(op, path, false, call)
}

// Symlink makes a symlink.
func (t Tree) Symlink(target, path string) error {
	return t.change("symlink", path, func(dir int, path string) error {
		return unix.Symlinkat(target, dir, path)
	})
}

// Unlink removes a directory entry that is not a directory.
func (t Tree) Unlink(path string) error {
	return t.change("unlink", path, func(dir int, path string) error {
		return unix.Unlinkat(dir, path, 0)
	})
}

// Rename renames an entry.
func (t Tree) Rename(from, to string) error {
	return t.change("rename", to, func(dir int, to string) error {
		return t.at(from, false, func(old int, from string) error {
			return unix.Renameat(old, from, dir, to)
		})
	})
}

// Link gives a file another name.
func (t Tree) Link(file, path string) error {
	return t.change("link", path, func(dir int, path string) error {
		return t.at(file, false, func(old int, file string) error {
			return unix.Linkat(old, file, dir, path, 0)
		})
	})
}

// Create makes a new executable file.
func (t Tree) Create(path string) (f *os.File, err error) {
	err = t.change("create", path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o755)
		f = os.NewFile(uintptr(fd), path)
		return err
	})
	return f, err
}

var errUnpinned = errors.New("it is in none of the directories that were opened")

// Point makes a link, new or not, point to a file with one rename(2). The caller holds the directory's lock, so what
// stands under the temporary name was left behind by a process that was killed, and is removed. If it is not a
// symlink, it is a user's, and another name is taken.
//
// Where a directory is pinned, only a link in such a directory is replaced: another path may lead elsewhere by now.
func (t Tree) Point(link, file string) error {
	if dir, _ := t.pinnedAt(link); dir == nil && t.pinned != nil {
		return PathError("replace", link, errUnpinned)
	}
	content, err := t.Content(link, file)
	if err != nil {
		return err
	}
	return t.replace(link, content, "new", t.pid())
}

// ReplaceUnlocked makes a link contain a target, for a caller that does not hold the lock, under a temporary name of
// this process. Where others can write, somebody may have taken that one; nobody can foresee the other.
func (t Tree) ReplaceUnlocked(link, target string) error {
	return t.replace(link, target, t.pid(), strconv.FormatInt(time.Now().UnixNano(), 36))
}

func (t Tree) pid() string { return strconv.Itoa(cmp.Or(t.PID, os.Getpid())) }

// Temporary returns the name, in the same directory, under which the successor of a link or file is made before it is
// renamed.
func Temporary(link, suffix string) string {
	return programs.Join(programs.Dir(link), "."+programs.Base(link)+"."+suffix)
}

// Displace puts a symlink where something stands that may go, in one step, and removes that. What stands there may
// have become something else meanwhile, such as what another call has put there: then that is put back. Others can
// write to the directory, so the temporary name may be taken; a directory that is not empty stays under it.
func (t Tree) Displace(path, target string, mayGo func(unix.Stat_t) bool) error {
	suffix := t.pid() + "." + strconv.FormatInt(time.Now().UnixNano(), 36)
	temporary := Temporary(path, suffix)
	err := t.Symlink(target, temporary)
	if err != nil {
		return err
	}
	err = t.exchange(temporary, path)
	if err != nil {
		_ = t.Unlink(temporary)
		return err
	}
	st, err := t.Lstat(temporary)
	if err != nil || !mayGo(st) {
		err = cmp.Or(t.exchange(temporary, path), error(unix.EEXIST))
		_ = t.Unlink(temporary)
		return err
	}
	if IsDir(st) {
		_ = t.removeDirectory(temporary)
		return nil
	}
	return t.Unlink(temporary)
}

// exchange swaps two entries of a directory.
func (t Tree) exchange(one, other string) error {
	return t.change("exchange", other, func(dir int, name string) error {
		return t.at(one, false, func(old int, one string) error {
			return unix.Renameat2(old, one, dir, name, unix.RENAME_EXCHANGE)
		})
	})
}

// removeDirectory removes an empty directory.
func (t Tree) removeDirectory(path string) error {
	return t.change("rmdir", path, func(dir int, path string) error {
		return unix.Unlinkat(dir, path, unix.AT_REMOVEDIR)
	})
}

// replace makes a link contain a target, under the first temporary name that is free or has a symlink.
func (t Tree) replace(link, target string, suffixes ...string) error {
	var err error
	for _, suffix := range suffixes {
		temporary := Temporary(link, suffix)
		err = t.relink(target, temporary)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return err
		}
		err = t.Rename(temporary, link)
		if err != nil {
			_ = t.Unlink(temporary) // the first error is the one to report
		}
		return err
	}
	return err
}

// relink makes a symlink. One that has this path goes, and what else has it stays.
func (t Tree) relink(target, path string) error {
	err := t.Symlink(target, path)
	if !errors.Is(err, unix.EEXIST) || !t.IsLink(path) {
		return err
	}
	failed := t.Unlink(path)
	if failed != nil {
		return err
	}
	return t.Symlink(target, path)
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
