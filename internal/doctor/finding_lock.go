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

const (
	mountLock = "Mount the host's /run/xtables.lock as a file (hostPath with type: FileOrCreate), or a writable /run " +
		"(docker run --tmpfs /run). Without a type, Kubernetes creates a directory there: remove it on the node. For " +
		"a user other than root, create the file in the image, owned by that user."
	waitForLock = "Have the client wait for the lock (option -w). If that does not help, find the process with " +
		"lslocks on the node."
)

func (o *observation) lock() *Finding {
	if o.wanted() != detect.Legacy || o.lockFault == nil || o.blocked() {
		return nil
	}
	found := &Finding{Severity: problem, Look: []string{"ls -ld " + lockPath()}}
	for f, command := range [...]string{"iptables", "ip6tables"} {
		if errors.Is(o.lockFault, errHeld) && len(o.listed[f]) > 0 {
			found.Look = []string{command + " -w 1 -t " + o.listed[f][0] + " -S"} // the table and the lock are there
		}
	}
	found.Text = "Calls of iptables-legacy wait or fail: another process has held its lock, " + lockPath() +
		", for a second."
	found.Do = waitForLock
	if !errors.Is(o.lockFault, errHeld) {
		found.Text = "Every call of iptables-legacy fails: it cannot open its lock (" + o.lockFault.Error() + ")."
		found.Do = mountLock
	}
	return found
}

// errHeld means that another process has the lock for longer than any iptables should.
var errHeld = errors.New("another process holds the lock")

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
		return fmt.Errorf("%q is not a regular file", path)
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
