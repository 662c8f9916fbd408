// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// ErrBusy means that another process is changing the links.
var ErrBusy = errors.New("another process is changing the links")

// Replace makes a link, new or not, point to a target with one rename(2). The caller holds the directory's lock, so what
// stands under the temporary name was left behind by a process that was killed, and is removed. If it is not a symlink, it
// is a user's, and another name is taken.
func (t Tree) Replace(link, target string) error {
	return t.replace(link, target, Temporary(link, "new"), ownTemporary(link))
}

// Temporary returns the name, in the same directory, under which the successor of a link or file is made before it is
// renamed.
func Temporary(link, suffix string) string {
	return programs.Join(programs.Dir(link), "."+programs.Base(link)+"."+suffix)
}

// ownTemporary is a temporary name that no other process uses.
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

// lock takes the lock of a directory, without which no link in it is changed. It is released when the descriptor is closed,
// by execve(2) at the latest. The error is ErrBusy, or says why there can be no lock.
func (t Tree) lock(dir string) (fd int, err error) {
	if err := t.stop("lock", dir); err != nil {
		return -1, err
	}
	if fd, err = t.open(dir, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return -1, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return fd, nil
	}
	unix.Close(fd)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return -1, fmt.Errorf("%q: %w", dir, ErrBusy)
	}
	return -1, &os.PathError{Op: "flock", Path: dir, Err: err}
}

// Lock waits for the lock of a directory, for ten seconds at most: anyone who can read a directory can hold its lock for ever.
func (t Tree) Lock(dir string) (unlock func(), err error) {
	for range 500 {
		fd, err := t.lock(dir)
		if err == nil {
			return func() { unix.Close(fd) }, nil
		}
		if !errors.Is(err, ErrBusy) {
			return nil, err
		}
		if t.step == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil, fmt.Errorf("%q: %w", dir, ErrBusy)
}

// Content returns what a link must contain to point to a file: its name alone if they are in the same directory.
func (t Tree) Content(link, file string) (string, error) {
	if t.SameFile(programs.Dir(link), programs.Dir(file)) {
		return programs.Base(file), nil
	}
	return absolute(file)
}
