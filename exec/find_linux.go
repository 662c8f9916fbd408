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
	if err == unix.ENOTDIR {
		err = unix.ENOENT
	}
	if err != nil {
		return &os.PathError{Op: "execute", Path: path, Err: err}
	}
	by := exposedBy(path, dir, directory)
	switch {
	case by != "":
		return &unusedError{path: path, by: by}
	case file.IsAt(file.Running, st):
		return fmt.Errorf("%q: %w", path, ErrItself)
	}
	return file.Executable(path)
}

// exposedBy returns what lets other users replace a program in a directory, "" if nothing does. A sticky directory
// does, even if the program there is root's: it may be another user's a moment later.
func exposedBy(path, dir string, directory unix.Stat_t) string {
	switch {
	case file.SystemDir(dir, directory):
		return ""
	case !file.Trusted(directory):
		return dir
	}
	return file.Exposed(path)
}

// unusedError is the error for a program that is passed over, because others can write what leads to it, or itself. To
// a guess, it is missing.
type unusedError struct{ path, by string }

func (e *unusedError) Error() string {
	return fmt.Sprintf("%q is not used: others can write %q", e.path, e.by)
}

func (e *unusedError) Unwrap() []error { return []error{ErrMissing, file.ErrExposed} }
