// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// check returns nil if this user may execute a file, and other users cannot replace it. If it is not a regular file,
// the error is EACCES, as from execve(2).
func check(dir, name string) error {
	path := dir + "/" + name
	var st, directory unix.Stat_t
	err := unix.Stat(path, &st)
	if err == nil {
		err = unix.Stat(dir, &directory)
	}
	switch {
	case err == unix.ENOTDIR:
		err = unix.ENOENT
	case err != nil:
	case !file.TrustedDir(directory):
		return &unusedError{path: path, exposed: dir}
	case !file.IsSystemDir(directory) && file.Exposed(path) != "":
		return &unusedError{path: path, exposed: file.Exposed(path)}
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

// unusedError is the error for a program that is passed over, because others can write what is exposed: its directory,
// or something else on the way to it. To a guess, it is missing.
type unusedError struct{ path, exposed string }

func (e *unusedError) Error() string {
	return fmt.Sprintf("%q is not used: others can write %q", e.path, e.exposed)
}

func (e *unusedError) Unwrap() []error { return []error{ErrMissing, file.ErrExposed} }
