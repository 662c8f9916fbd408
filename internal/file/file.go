// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package file has two checks of a file: can only root and the caller change it, and is it the running one.
package file

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrExposed means that a directory is not trusted: other users could replace the files in it.
var ErrExposed = errors.New("users other than root and the caller can write it")

// Trusted reports whether a file or directory belongs to root or the caller, and no other user can write it. No group
// may write it either, not even group 0, because other users' containers often run in it.
func Trusted(st unix.Stat_t) bool {
	const othersWrite = 0o022
	return (st.Uid == 0 || int(st.Uid) == unix.Geteuid()) && st.Mode&othersWrite == 0
}

// IsRunning reports whether a file is the running one, by device and inode. Without /proc, it reports false.
func IsRunning(st unix.Stat_t) bool {
	var running unix.Stat_t
	err := unix.Stat("/proc/self/exe", &running)
	return err == nil && running.Dev == st.Dev && running.Ino == st.Ino
}
