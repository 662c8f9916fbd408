// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"os"

	"golang.org/x/sys/unix"
)

// executable returns nil if this user may execute a file. execve(2) answers EACCES if it is not a regular file.
func executable(path string) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = unix.EACCES
	}
	if err == nil {
		err = unix.Access(path, unix.X_OK)
	}
	if err == unix.ENOTDIR {
		err = unix.ENOENT
	}
	if err != nil {
		return &os.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}
