// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// trusted reports whether programs in a directory may be run: it is root's or the caller's, and others cannot write it.
func trusted(dir string) bool {
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	owned := st.Uid == 0 || int(st.Uid) == unix.Geteuid()
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && owned && st.Mode&0o022 == 0
}

// executable returns nil if this user may execute a file. execve(2) answers EACCES if it is not a regular file.
func executable(path string) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err == nil && isRunning(st) {
		return fmt.Errorf("%q: %w", path, ErrItself)
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = unix.EACCES
	}
	if err == nil {
		err = unix.Access(path, unix.X_OK)
	}
	if err != nil {
		return &os.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}

// isRunning reports whether a file is the running one. Without /proc, that is not known.
func isRunning(file unix.Stat_t) bool {
	var running unix.Stat_t
	err := unix.Stat("/proc/self/exe", &running)
	return err == nil && running.Dev == file.Dev && running.Ino == file.Ino
}
