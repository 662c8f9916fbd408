// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

var (
	errHeld = errors.New("another process has held it for a second")
	errFIFO = errors.New("it is a FIFO")
)

const lockVariable = "XTABLES_LOCKFILE"

// lockFile is where iptables-legacy has its lock.
func lockFile() string { return cmp.Or(os.Getenv(lockVariable), "/run/xtables.lock") }

// tryLock takes the lock as iptables-legacy does, for an instant, but does not wait to open a FIFO. It creates no file:
// where there is none, it returns what would keep iptables from creating one.
func tryLock(path string) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err == unix.ENOENT {
		hops := file.Hops(path) // where there is a symlink, the file that it names would be created
		return cannotCreate(filepath.Dir(hops[len(hops)-1]))
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	switch {
	case err != nil:
		return os.NewSyscallError("open", err)
	case st.Mode&unix.S_IFMT == unix.S_IFIFO:
		unix.Close(fd)
		return errFIFO
	}
	defer unix.Close(fd)
	const tries, pause = 200, 5 * time.Millisecond
	for range tries {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		time.Sleep(pause)
	}
	if err == unix.EWOULDBLOCK {
		return errHeld
	}
	return os.NewSyscallError("flock", err)
}

// cannotCreate returns why this user cannot create a file in a directory, nil if nothing is known to prevent it.
func cannotCreate(directory string) error {
	err := unix.Access(directory, unix.W_OK|unix.X_OK)
	var fs unix.Statfs_t
	if err == nil && unix.Statfs(directory, &fs) == nil && fs.Files > 0 && fs.Ffree == 0 {
		err = unix.ENOSPC
	}
	return os.NewSyscallError("create", err)
}
