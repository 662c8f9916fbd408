// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// check returns nil if this user may execute a file, and other users cannot replace it. If it is not a regular file,
// the error is EACCES, as from execve(2). The standard directories are taken as they are: who can write one of them
// decides what root runs by name, with or without a wrapper.
func check(dir, name string) error {
	path := dir + "/" + name
	var st, directory unix.Stat_t
	err := unix.Stat(path, &st)
	if err == nil {
		err = unix.Stat(dir, &directory)
	}
	isStandard := slices.Contains(iptables.Dirs(), dir)
	switch {
	case err == unix.ENOTDIR:
		err = unix.ENOENT
	case err != nil:
	case !isStandard && !file.Trusted(directory):
		return fmt.Errorf("%q: %w", dir, file.ErrExposed)
	case file.IsAt(file.Running, st):
		return fmt.Errorf("%q: %w", path, ErrItself)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = unix.EACCES
	default:
		err = unix.Access(path, unix.X_OK)
	}
	if err != nil {
		return &os.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}
