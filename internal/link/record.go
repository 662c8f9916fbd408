// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// Record is the record of one network namespace, in the container's own /dev. The zero Record has no /dev, so nothing
// is recorded.
type Record struct {
	Dev  *Dir
	Name string
}

// OpenRecord opens /dev for the record of this process's network namespace. It returns the zero Record if /dev is not
// the container's own, and an error if that could not be checked.
func OpenRecord() (Record, error) {
	var netns unix.Stat_t
	err := unix.Stat("/proc/self/ns/net", &netns)
	if err != nil {
		return Record{}, &os.PathError{Op: "stat", Path: "/proc/self/ns/net", Err: err}
	}
	dev, err := Open("/dev")
	if err != nil {
		return Record{}, err
	}
	if !dev.isContainers() {
		dev.Close()
		return Record{}, nil
	}
	return Record{Dev: dev, Name: "iptables-backend-" + strconv.FormatUint(netns.Ino, 10)}, nil
}

// isContainers reports whether a /dev is a container's own, as runtimes make it: a tmpfs that belongs to root, that
// nobody else can write, and in which ptmx is a symlink. On a host, ptmx is a device.
func (d *Dir) isContainers() bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(d.fd, &fs)
	if err != nil || fs.Type != unix.TMPFS_MAGIC {
		return false
	}
	root, err := d.Lstat(".")
	if err != nil || root.Uid != 0 || !file.Trusted(root) {
		return false
	}
	ptmx, err := d.Lstat("ptmx")
	return err == nil && ptmx.Mode&unix.S_IFMT == unix.S_IFLNK
}

// Read returns the recorded backend, "" if there is none. Whose symlink it is, is not asked: in such a directory, only
// root can make one.
func (r Record) Read() detect.Backend {
	if r.Dev == nil {
		return ""
	}
	content, err := r.Dev.Readlink(r.Name)
	backend := detect.Backend(content)
	if err != nil || !backend.Valid() {
		return ""
	}
	return backend
}

// keepGuess records a guess, and returns the backend that the call runs. The first call wins, because symlink(2)
// replaces nothing: later guesses run the recorded backend.
func (r Record) keepGuess(backend detect.Backend) detect.Backend {
	err := r.Dev.symlink(string(backend), r.Name)
	if errors.Is(err, unix.EEXIST) {
		return cmp.Or(r.Read(), backend)
	}
	return backend // recorded now, or cannot be recorded
}

// Put records a backend, in the place of another one. It does nothing if there is no /dev for a record.
func (r Record) Put(backend detect.Backend) error {
	if r.Dev == nil {
		return nil
	}
	err := r.Dev.symlink(string(backend), r.Name)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if r.Read() == backend {
		return nil
	}
	return r.Dev.Replace(string(backend), r.Name)
}

// Remove removes the record. It returns an error, ErrRecord, only if the record is still there.
func (r Record) Remove() error {
	if r.Dev == nil {
		return nil
	}
	err := r.Dev.remove(r.Name)
	if r.Read() == "" {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrRecord, err)
}
