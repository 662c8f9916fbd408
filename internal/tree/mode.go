// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "golang.org/x/sys/unix"

// What follows reads the mode that stat(2) returns, see inode(7).

// IsLink reports whether lstat(2) returned this for a symlink.
func IsLink(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFLNK }

// IsDir reports whether stat(2) returned this for a directory.
func IsDir(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// IsRegular reports whether stat(2) returned this for a regular file.
func IsRegular(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }

// IsSticky reports whether it is a directory in which others cannot rename or remove what is not theirs, as /tmp is.
// On a file, the bit means nothing.
func IsSticky(st unix.Stat_t) bool { return st.Mode&unix.S_ISVTX != 0 }

// SharedWrite reports whether the mode lets anybody but the owner write.
func SharedWrite(st unix.Stat_t) bool { return st.Mode&(unix.S_IWGRP|unix.S_IWOTH) != 0 }

// IsExecutable reports whether it is a regular file that somebody may execute.
func IsExecutable(st unix.Stat_t) bool {
	const somebody = 0o111
	return IsRegular(st) && st.Mode&somebody != 0
}
