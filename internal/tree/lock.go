// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means that another process is changing the links, or holds the lock for another reason: whoever can read a
// directory can lock it.
var ErrBusy = errors.New("another process has locked the directory")

// TryLock takes the lock of a directory, without which no link in it is changed. It is released by unlock, by
// execve(2) at the latest. The error wraps ErrBusy, or says why there can be no lock.
func (t Tree) TryLock(dir string) (unlock func(), err error) {
	if err := t.Pause("lock", dir); err != nil {
		return nil, err
	}
	fd, err := t.open(dir, true, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { unix.Close(fd) }, nil
	}
	unix.Close(fd)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrBusy
	}
	return nil, PathError("flock", dir, err)
}

// Lock waits for the lock of a directory, for ten seconds at most.
func (t Tree) Lock(dir string) (unlock func(), err error) { return t.LockWithin(dir, 10*time.Second) }

// LockWithin waits for the lock of a directory until a deadline. Where a test watches the steps there is no clock: it
// gives up after a number of tries.
func (t Tree) LockWithin(dir string, wait time.Duration) (unlock func(), err error) {
	const tries = 500
	deadline := time.Now().Add(wait)
	for range tries {
		unlock, err = t.TryLock(dir)
		late := t.Step == nil && time.Now().After(deadline)
		if late || !errors.Is(err, ErrBusy) {
			return unlock, err
		}
		if t.Step == nil {
			time.Sleep(wait / tries)
		}
	}
	return nil, err
}
