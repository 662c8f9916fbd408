// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	// ErrMissing means that there is no program for the command and backend.
	ErrMissing = errors.New("no such program")
	// ErrRecursion means that the program is a wrapper.
	ErrRecursion = errors.New("it is the wrapper itself")
)

// Find returns the path of the first file, in the first directory that has one, that can be executed. The directories are
// asked for one by one, so that the usual first one costs no more than it must.
//
// stat is stat(2); isWrapper reports whether a file is a wrapper. The error wraps ErrMissing or ErrRecursion, or says why
// a file that exists cannot be executed.
func Find(dirs iter.Seq[string], files []string, stat func(string) (unix.Stat_t, error),
	isWrapper func(string, unix.Stat_t) (bool, error)) (string, error) {
	var unusable error // the first that exists and cannot be executed
	for dir := range dirs {
		for _, file := range files {
			path := Join(dir, file)
			st, err := stat(path)
			switch {
			case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
				continue
			case err != nil:
				unusable = cmp.Or(unusable, error(&os.PathError{Op: "stat", Path: path, Err: err}))
				continue
			case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0:
				unusable = cmp.Or(unusable, error(&os.PathError{Op: "execve", Path: path, Err: unix.EACCES}))
				continue
			}
			switch wrapper, err := isWrapper(path, st); {
			case err != nil:
				return "", err
			case wrapper:
				return "", fmt.Errorf("%q: %w", path, ErrRecursion)
			}
			return path, nil
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", fmt.Errorf("%w: %s, looked for in %s", ErrMissing, strings.Join(files, " or "),
		strings.Join(slices.Collect(dirs), ", "))
}
