// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The lock of iptables-legacy.

// errHeld means that another process has the lock for longer than any iptables should.
var errHeld = errors.New("another process holds the lock")

// errNoFile means that something else is in its place.
var errNoFile = errors.New("is not a regular file")

// lockPath is where iptables-legacy has its lock.
func lockPath() string { return cmp.Or(os.Getenv("XTABLES_LOCKFILE"), "/run/xtables.lock") }

// lockFault says why iptables-legacy cannot have its lock. It opens and locks the file as iptables does, but as a reader
// and for an instant, and creates none: where there is none, it says what would keep iptables from creating one.
func lockFault() error {
	path := lockPath()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return cannotCreate(path)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%q %w", path, errNoFile)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	const tries, pause = 10, 100 * time.Millisecond
	for range tries {
		err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		time.Sleep(pause)
	}
	switch {
	case err == unix.EWOULDBLOCK:
		return errHeld
	case err != nil:
		return fmt.Errorf("lock %q: %w", path, err)
	}
	return nil
}

// cannotCreate says why a file cannot be created, nil if nothing is known to prevent it.
func cannotCreate(path string) error {
	directory := filepath.Dir(path)
	err := unix.Access(directory, unix.W_OK)
	var fs unix.Statfs_t
	if err == nil && unix.Statfs(directory, &fs) == nil && fs.Files > 0 && fs.Ffree == 0 {
		err = unix.ENOSPC
	}
	if err != nil {
		return fmt.Errorf("create %q: %w", path, err)
	}
	return nil
}
