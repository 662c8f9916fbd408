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
// call runs: that one, or the one that another call has kept meanwhile. own is DIR, or nil if there is none, or if
// nothing may be kept. A step that fails keeps nothing, and the call goes on. The next call asks again.
//
// An answer is recorded if 1 to 3 hold. A certain answer is then stored in the switch, if 4 holds, too:
//
//  1. The user is root, and for a guess, no question failed. Otherwise the caller passes no DIR.
//  2. The switch points to the wrapper, or the running file is a copy that can be adopted.
//  3. The mounts and the network namespace are those of process 1.
//  4. The directory is trusted (file.TrustedDir) and can be written, no other process has its lock, and the switch
//     still points to the wrapper.
//
// Besides, the record needs a /dev of the container's own, and the switch a multi-call program. The order of the writes
// is a protocol: the tests in internal/link/interleave run every interleaving of it.
func Keep(own *Dir, record Record, backend detect.Backend, program string, certain bool) detect.Backend {
	mayChange := own != nil && own.mayChange(backend)
	recorded := record.Read() // after the switch was read: other calls write the record first
	switch {
	case !certain && recorded != "":
		return recorded
	case !mayChange:
		return backend
	}
	content := ""
	if certain && own.isTrusted() && own.isWritable() {
		content, _ = own.ContentFor(backend, program) // "" in an image without multi-call programs
	}
	records := record.Dev != nil && recorded != backend
	switch {
	case content == "" && !records || !OwnContainer():
		return backend
	case !certain:
		return record.keepGuess(backend)
	}
	if records {
		_ = record.Put(backend) // if it fails, the answer is stored all the same
	}
	if content == "" {
		return backend
	}
	return own.store(content, backend)
}

// mayChange reports whether condition 2 of Keep holds. A copy can be adopted if it has one of the six commands, and
// iptables-wrapper is missing or the same file: a hard link, or left by a killed call. A switch that points to a
// program is older than the copy: then the copy is not adopted, unless that is the program of the answer, which another
// call has stored before it was killed.
func (d *Dir) mayChange(answer detect.Backend) bool {
	stored, err := d.Stored()
	leadsToWrapper := err == nil && stored == ""
	isFree := leadsToWrapper || errors.Is(err, os.ErrNotExist)
	switch {
	case d.Running == Wrapper:
		return leadsToWrapper
	case !slices.Contains(iptables.Commands(), d.Running):
		return false
	case d.isRunning(Wrapper):
		return isFree || stored == answer
	}
	_, missing := d.Lstat(Wrapper)
	return errors.Is(missing, os.ErrNotExist) && isFree
}

// store points the switch at a backend's program, unless another call was faster, or another process has the lock. It
// returns the backend that the call runs. The lock is held until execve(2).
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

// adopt lays the switch for a copy, such as a binary that was copied over /usr/sbin/iptables. The file first gets the
// name iptables-wrapper, so that it never loses its last name. Then those of the six commands that lead to it become
// links to the switch. The caller holds the lock.
func (d *Dir) adopt() error {
	// Ask this before link(2): on an overlay file system, link(2) gives one of several hard links a new inode.
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

// Lay makes names links to the switch. If there is no switch, Lay first makes one that points to the wrapper's file in
// the directory, which must exist. At every moment, each name leads to what it led to before, or to the switch. The
// caller holds the lock.
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
