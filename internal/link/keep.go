// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Keep keeps the answer of a call if it may: a backend, and the path of its program. It returns the backend that the
// call runs: that one, or what another call has kept meanwhile. own is DIR, or nil if there is none. If a step fails,
// nothing more is kept, and the call goes on: the next one asks again.
//
// An answer is recorded if 1 to 3 hold, and, unless it is a guess, then stored in the switch if 4 holds, too:
//
//  1. The user is root. If it is a guess, no question failed. The caller checks this.
//  2. The switch points to the wrapper, or the running file is a copy that can be adopted.
//  3. The mounts and the network namespace are those of process 1.
//  4. The directory can be written, no other process has its lock, and the switch still points to the wrapper.
//
// Besides, the record needs a /dev that is the container's own, and the switch a multi-call program.
//
// The order of the writes is a protocol. The tests in internal/link/interleave run every interleaving of it.
func Keep(own *Dir, record Record, backend detect.Backend, program string, certain bool) detect.Backend {
	if own == nil || !own.isOpen() {
		return backend
	}
	content := ""
	if certain && own.isWritable() {
		content, _ = own.contentFor(backend, program) // "" in an image without multi-call programs
	}
	records := record.Dev != nil && record.Read() != backend // another call may have made the record meanwhile
	if content == "" && !records || !OwnContainer() {
		return backend
	}
	if records {
		backend = record.keep(backend, certain)
	}
	if content != "" {
		backend = own.store(content, backend)
	}
	return backend
}

// isOpen reports whether condition 2 of Keep holds. The running file is a copy that can be adopted if it has one of the
// six names, and iptables-wrapper is the same file, as for a hard link and after a kill, or is missing. If it is
// missing, a switch that points to a program is left over from before the copy was made: then the copy is not adopted.
func (d *Dir) isOpen() bool {
	stored, err := d.Stored()
	switch {
	case d.Running == Wrapper:
		return err == nil && stored == ""
	case !slices.Contains(iptables.Commands(), d.Running):
		return false
	case d.isRunning(Wrapper):
		return true
	}
	_, missing := d.Lstat(Wrapper)
	isFree := err == nil && stored == "" || errors.Is(err, os.ErrNotExist)
	return errors.Is(missing, os.ErrNotExist) && isFree
}

// store points the switch at a backend's program, unless another call was faster, or has the lock. It returns the
// backend that the call runs. The lock is held until execve(2).
func (d *Dir) store(content string, backend detect.Backend) detect.Backend {
	err := d.Lock(0)
	if err == nil && d.Running != Wrapper {
		err = d.adopt()
	}
	if err != nil {
		return backend
	}
	stored, err := d.Stored()
	if err == nil && stored == "" {
		_ = d.Replace(content, Switch)
	}
	return cmp.Or(stored, backend)
}

// adopt lays the switch for the running file, which is a copy: the binary was copied over /usr/sbin/iptables. The file
// gets the name iptables-wrapper first, so that it never loses its last name. Then those of the six names that lead to
// it are linked to the switch. The caller holds the lock.
func (d *Dir) adopt() error {
	// This is asked before the link is made: then an overlay file system gives one of several hard links a new inode.
	isAnother := func(name string) bool { return !d.isRunning(name) }
	names := slices.DeleteFunc(iptables.Commands(), isAnother)
	err := d.do("link", Wrapper, func() error {
		return unix.Linkat(unix.AT_FDCWD, d.Exe, d.fd, Wrapper, unix.AT_SYMLINK_FOLLOW)
	})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return d.Lay(names)
}

// Lay makes the switch, if there is none, and links some of the six names to it. A new switch points to the wrapper's
// file in the directory, which must exist. At every moment, each name leads to the same program as before, or to the
// wrapper. The caller holds the lock.
func (d *Dir) Lay(names []string) error {
	_, err := d.Stored()
	if errors.Is(err, os.ErrNotExist) {
		err = d.symlink(Wrapper, Switch)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		err := d.Replace(Switch, name)
		if err != nil {
			return err
		}
	}
	return nil
}
