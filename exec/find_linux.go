// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// checkDirectory returns nil if programs in a directory may be run, otherwise why not.
func checkDirectory(dir string) error {
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	if err == nil && !file.Trusted(st) {
		return fmt.Errorf("%q: %w", dir, file.ErrExposed)
	}
	return err
}

// checkProgram returns nil if this user may execute a file. If it is not a regular file, the error is EACCES, as from
// execve(2).
func checkProgram(path string) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err == nil && file.IsRunning(st) {
		return fmt.Errorf("%q: %w", path, ErrItself)
	}
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
