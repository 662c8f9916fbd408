// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// The lock of iptables-legacy.

// errHeld means that another process has the lock for longer than any iptables should.
var errHeld = errors.New("another process holds the lock")

// Where iptables-legacy has its lock: where the variable says, otherwise at the default.
const (
	lockVariable = "XTABLES_LOCKFILE"
	defaultLock  = "/run/xtables.lock"
)

// lockFault says why iptables-legacy cannot take its lock. It opens and locks the file as iptables does, but as a
// reader and for an instant, and creates none: where there is none, it says what would keep iptables from creating one.
func lockFault(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		hops := file.Hops(path) // where there is a link, the file that it names would be created
		return cannotCreate(hops[len(hops)-1])
	case err == nil && (info.IsDir() || info.Mode()&os.ModeNamedPipe != 0):
		return fmt.Errorf("%q is a directory or a FIFO", path)
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
	if err == unix.EWOULDBLOCK {
		return errHeld
	}
	if err != nil {
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

func (s *state) lock() *Finding {
	if s.wanted() != detect.Legacy || s.lockFault == nil || s.isBlocked() {
		return nil
	}
	path := s.lockFile
	found := &Finding{
		Severity: problem,
		Text:     "iptables-legacy cannot take its lock, so every call fails: " + s.lockFault.Error() + ".",
		Look:     []string{"ls -ld " + quoted(path)},
	}
	switch {
	case errors.Is(s.lockFault, errHeld):
		found.Text = "Calls of iptables wait or fail: another process held the lock of iptables-legacy, " + path +
			", for a second."
		for f, command := range loaders {
			for _, name := range s.listed[f] {
				found.Look = []string{command + " -w 1 -t " + name + " -S"} // the table and the lock are there
			}
		}
		found.Do = "Have the client wait for the lock (option -w). If that does not help, find the process that " +
			"holds it: lslocks lists it, if started where that process runs."
	case path != defaultLock:
		found.Look = append(found.Look, "printenv "+lockVariable)
		found.Do = "Remove the environment variable " + lockVariable + ", or set it to a file that can be opened and " +
			"locked."
	case errors.Is(s.lockFault, unix.EACCES), errors.Is(s.lockFault, unix.EPERM):
		found.Do = "Run as root, or make a file " + path + " that belongs to this user in the image. If this is " +
			"root, look at the node's audit log: a seccomp profile, AppArmor or SELinux forbids it."
	case errors.Is(s.lockFault, unix.ENOSPC):
		found.Look = append(found.Look, "df -i "+quoted(filepath.Dir(path)))
		found.Do = "Free space or inodes on the file system of " + path + "."
	case s.network.Own:
		found.Look = append(found.Look, "cat /proc/self/mounts")
		found.Do = "Mount an emptyDir at " + filepath.Dir(path) + ", the same in all containers of the Pod that call " +
			"iptables."
	default:
		found.Look = append(found.Look, "cat /proc/self/mounts")
		found.Do = "Mount the host's " + path + " (hostPath with type: FileOrCreate; without a type, Kubernetes " +
			"creates a directory, to be removed on the node)."
	}
	return found
}
