// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// defaultLock is the file that all programs of iptables-legacy on a host lock, unless XTABLES_LOCKFILE says otherwise.
const defaultLock = "/run/xtables.lock"

// irregular is the error of a lock that is not a regular file. iptables-legacy opens it all the same: that takes for
// ever with a FIFO, and may do something to a device.
type irregular struct{ path, kind string }

func (e irregular) Error() string { return fmt.Sprintf("%q is %s, not a regular file", e.path, e.kind) }

const (
	directory = "a directory"
	device    = "a device"
)

var kinds = map[uint32]string{
	unix.S_IFDIR:  directory,
	unix.S_IFIFO:  "a FIFO",
	unix.S_IFSOCK: "a socket",
	unix.S_IFCHR:  device,
	unix.S_IFBLK:  device,
}

// lockKind is what the lock is, if it exists and is not a regular file.
func (r *Report) lockKind() string {
	var not irregular
	errors.As(r.lock, &not)
	return not.kind
}

// lockSeverity is that of what is wrong with the lock: some devices can be locked, /dev/null for example.
func (r *Report) lockSeverity() string {
	if r.lockKind() == device {
		return Warning
	}
	return Problem
}

// lockPath is the file that iptables-legacy locks here, and whether XTABLES_LOCKFILE says so.
func (r *Report) lockPath() (path string, variable bool) {
	path = os.Getenv("XTABLES_LOCKFILE")
	if path == "" || r.distrusted {
		return defaultLock, false
	}
	return path, true
}

// lookAtLock finds out why iptables-legacy could not lock its tables: it opens a file for that and creates it if
// there is none.
func (r *Report) lookAtLock() {
	path, variable := r.lockPath()
	r.ownLock = variable
	r.lock = lockable(path)
	needed := r.wanted() == detect.Legacy || len(r.removals()) > 0
	if r.lock == nil && needed {
		r.holder = holder(path)
	}
}

func lockable(path string) error {
	var t tree.Tree
	c, err := t.Follow(path)
	if tree.IsNotExist(err) { // it is created where the links point
		return t.Access(programs.Dir(c.End), unix.W_OK)
	}
	if err != nil {
		return err
	}
	kind := c.Stat.Mode & unix.S_IFMT
	if kind != unix.S_IFREG {
		return irregular{path, kinds[kind]}
	}
	return t.Access(path, unix.R_OK)
}

// holder says who has held a lock for a second, which is longer than a command of iptables takes; "" if nobody has.
func holder(path string) string {
	f, err := tree.Tree{}.Open(path) // does not block, whatever stands there by now
	if err != nil {
		return ""
	}
	defer f.Close() // which unlocks it
	for range 20 {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK {
			return ""
		}
		time.Sleep(50 * time.Millisecond)
	}
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st) // of an open file it cannot fail
	who := "a process outside this container"
	locks, _ := os.ReadFile("/proc/locks") // 1: FLOCK  ADVISORY  WRITE 1234 00:19:5678 0 EOF
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line)
		if len(fields) > 5 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], fmt.Sprint(":", st.Ino)) {
			name, _ := os.ReadFile("/proc/" + fields[4] + "/comm")
			who = fmt.Sprintf("process %s (%s)", fields[4], strings.TrimSpace(string(name)))
		}
	}
	return fmt.Sprintf("%s holds %q", who, path)
}
