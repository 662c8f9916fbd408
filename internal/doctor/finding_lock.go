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

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

const waitForLock = "Have the client wait for the lock (option -w). If that does not help, find the process with " +
	"lslocks on the node."

func (o *observation) lock() *Finding {
	if o.wanted() != detect.Legacy || o.lockFault == nil || o.blocked() {
		return nil
	}
	found := &Finding{
		Severity: problem,
		Text:     "iptables-legacy cannot open its lock, so every call fails: " + o.lockFault.Error() + ".",
		Look:     []string{"ls -ld " + lockPath()},
	}
	switch {
	case errors.Is(o.lockFault, errHeld):
		found.Text = "Calls of iptables wait or fail: another process held the lock of iptables-legacy, " + lockPath() +
			", for a second."
		found.Do = waitForLock
		for f, command := range [...]string{"iptables", "ip6tables"} {
			if len(o.listed[f]) > 0 {
				// The table and the lock are there.
				found.Look = []string{command + " -w 1 -t " + o.listed[f][0] + " -S"}
			}
		}
	case os.Getenv("XTABLES_LOCKFILE") != "":
		found.Look = append(found.Look, "printenv XTABLES_LOCKFILE")
		found.Do = "Remove the environment variable XTABLES_LOCKFILE, or set it to a file."
	case errors.Is(o.lockFault, errNoFile):
		found.Do = "In the Pod's spec, give the hostPath volume of " + lockPath() + " the type FileOrCreate. " +
			"Without a " +
			"type, Kubernetes creates a directory on the node: remove it there."
	case errors.Is(o.lockFault, unix.EACCES):
		found.Do = "In the image, make a file " + lockPath() + " that belongs to this user. Or run as root."
	default:
		found.Look = []string{"ls -ld " + filepath.Dir(lockPath()), "cat /proc/self/mounts"}
		found.Do = "Mount the host's " + lockPath() + " (hostPath with type: FileOrCreate), or a writable " +
			filepath.Dir(lockPath()) + " (an emptyDir; docker run --tmpfs /run)."
	}
	return found
}

// errHeld means that another process has the lock for longer than any iptables should.
var errHeld = errors.New("another process holds the lock")

// errNoFile means that something else is in its place.
var errNoFile = errors.New("is not a regular file")

// lockPath is where iptables-legacy has its lock.
func lockPath() string { return cmp.Or(os.Getenv("XTABLES_LOCKFILE"), "/run/xtables.lock") }

// lockFault says why iptables-legacy cannot have its lock, which it creates if there is none. Nothing is created here.
func lockFault() error {
	const tries, pause = 10, 100 * time.Millisecond
	path := lockPath()
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		err = unix.Access(filepath.Dir(path), unix.W_OK)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%q %w", path, errNoFile)
	case err == nil:
		err = unix.Access(path, unix.R_OK)
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	for range tries {
		if !held(path) {
			return nil
		}
		time.Sleep(pause)
	}
	return errHeld
}

// held reports whether another process has a lock. The only way to see a lock of another container is to ask for it:
// here as a reader, and for an instant.
func held(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}
