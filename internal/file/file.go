// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package file answers three questions about a file: may it be run as root, is it the running one, and what is in it.
package file

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrExposed means that a directory is not trusted: other users could replace what is in it.
var ErrExposed = errors.New("users other than root and the caller can write it")

// Trusted reports whether a file or directory is a trusted user's, and nobody else can write it. A group counts as
// somebody else, root's too: containers of other users often run in group 0.
func Trusted(st unix.Stat_t) bool {
	const othersWrite = 0o022
	return st.Mode&othersWrite == 0 && TrustedUser(st.Uid)
}

// TrustedUser reports whether a user is root, the caller, or the owner of the root directory, who could replace all
// that is below it. In a user namespace that does not map root, such as rootlesskit's, root's files are nobody's, and
// so is the root directory.
func TrustedUser(uid uint32) bool {
	if uid == 0 || int(uid) == unix.Geteuid() {
		return true
	}
	var root unix.Stat_t
	err := unix.Stat("/", &root)
	return err == nil && root.Uid == uid
}

// Read returns what is in a file. os.ReadFile starts the runtime's poller, which takes two more descriptors, and ends
// the whole process if there are none left.
func Read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return io.ReadAll(f)
}

// IsRunning reports whether a file is the running one, by device and inode. Without /proc, that is not known.
func IsRunning(st unix.Stat_t) bool {
	var running unix.Stat_t
	err := unix.Stat("/proc/self/exe", &running)
	return err == nil && running.Dev == st.Dev && running.Ino == st.Ino
}
