// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
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

// irregular is the error of a lock that is not a regular file. iptables-legacy opens it all the same: that blocks
// forever on a FIFO, and may do something to a device.
type irregular struct{ path, kind string }

func (e irregular) Error() string { return fmt.Sprintf("%q is %s, not a regular file", e.path, e.kind) }

const (
	kindDirectory = "a directory"
	kindDevice    = "a device"
)

var kinds = map[uint32]string{
	unix.S_IFDIR:  kindDirectory,
	unix.S_IFIFO:  "a FIFO",
	unix.S_IFSOCK: "a socket",
	unix.S_IFCHR:  kindDevice,
	unix.S_IFBLK:  kindDevice,
}

// lockKind is what the lock is, if it exists and is not a regular file.
func (r *Report) lockKind() string {
	var not irregular
	errors.As(r.lock, &not)
	return not.kind
}

// lockSeverity is that of what is wrong with the lock: some devices can be locked, /dev/null for example.
func (r *Report) lockSeverity() string {
	if r.lockKind() == kindDevice {
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

// holder says which process has held a lock for a second, which is longer than a command of iptables takes; "" if none
// has. Where the lock is free, this takes it for a moment, as iptables-legacy does: nothing else shows a lock of a
// process that cannot be seen from here, and one that is shared keeps iptables-legacy out too. A call that does not
// wait (-w) fails in that moment, as beside any other call.
func holder(path string) string {
	f, err := tree.Tree{}.Open(path) // does not block, whatever stands there by now
	if err != nil {
		return ""
	}
	defer f.Close() // which unlocks it
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st) // of an open file it cannot fail
	lockedForAWhile := func() bool {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK {
			return false
		}
		time.Sleep(retry)
		return true
	}
	by := func() string {
		locks, _ := os.ReadFile("/proc/locks")
		return lockedBy(string(locks), st)
	}
	held, pid := heldByOne(lockedForAWhile, by)
	if !held {
		return ""
	}
	who := "another process"
	if pid != "" {
		who = process(pid)
	}
	return fmt.Sprintf("%s holds %q", who, path)
}

// process names a process, which may call itself anything.
func process(pid string) string {
	name, _ := os.ReadFile("/proc/" + pid + "/comm")
	return fmt.Sprintf("process %s (%q)", pid, strings.TrimSpace(string(name)))
}

// Together, the rounds take a second. Each of them asks again who holds the lock.
const (
	rounds = 20
	tries  = 50               // in each round
	retry  = time.Millisecond // shorter than the time between two commands, each of which locks
)

// heldByOne reports whether a lock stays locked, and by which process, if that is known. Of several that take turns,
// none holds it for long.
func heldByOne(locked func() bool, by func() string) (held bool, pid string) {
	for range rounds {
		now := by()
		takeTurns := pid != "" && now != "" && now != pid
		if takeTurns {
			return false, ""
		}
		pid = cmp.Or(now, pid)
		for range tries {
			if !locked() {
				return false, ""
			}
		}
	}
	return true, pid
}

// lockedBy returns the process that has locked a file with flock(2), "" if it cannot be seen from here. A line of
// /proc/locks ends with the device, in hexadecimal, the inode, and the locked range:
//
//	1: FLOCK  ADVISORY  WRITE 1234 00:19:5678 0 EOF
func lockedBy(locks string, st unix.Stat_t) string {
	dev := uint64(st.Dev) // 32 bits on MIPS
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), st.Ino)
	for line := range strings.Lines(locks) {
		fields := strings.Fields(line)
		if len(fields) > 5 && fields[1] == "FLOCK" && fields[5] == file {
			return fields[4]
		}
	}
	return ""
}
