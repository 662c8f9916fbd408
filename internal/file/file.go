// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package file answers two questions about a file: may it be run as root, and is it the running one.
package file

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrExposed means that a directory is not trusted: other users could replace what is in it.
var ErrExposed = errors.New("users other than root and the caller can write it")

// Trusted reports whether a file or directory is root's or the caller's, and nobody else can write it. A group counts as
// somebody else, root's too: containers of other users often run in group 0.
func Trusted(st unix.Stat_t) bool {
	const othersWrite = 0o022
	return (st.Uid == 0 || int(st.Uid) == unix.Geteuid()) && st.Mode&othersWrite == 0
}

// IsRunning reports whether a file is the running one, by device and inode. Without /proc, that is not known.
func IsRunning(st unix.Stat_t) bool {
	var running unix.Stat_t
	err := unix.Stat("/proc/self/exe", &running)
	return err == nil && running.Dev == st.Dev && running.Ino == st.Ino
}
