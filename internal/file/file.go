// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package file checks whose a file is and whether it is the running one, and reads files for a call that has few
// descriptors left.
package file

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Executable returns nil if this user may execute a file, otherwise the error that execve(2) gives for its kind or
// mode: EACCES if it is not a regular file.
func Executable(path string) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	switch {
	case err != nil:
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

// Running leads to the running file, if there is a /proc.
const Running = "/proc/self/exe"

// IsAt reports whether a path leads to a file, by device and inode.
func IsAt(path string, st unix.Stat_t) bool {
	var there unix.Stat_t
	err := unix.Stat(path, &there)
	return err == nil && there.Dev == st.Dev && there.Ino == st.Ino
}

// Read returns the first bytes of a file, at most limit. Package os would start the runtime's poller, which needs more
// descriptors. If they are short, the runtime ends the process.
func Read(path string, limit int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	content := make([]byte, 0, min(limit, 8<<10))
	for len(content) < limit {
		if len(content) == cap(content) {
			content = slices.Grow(content, min(limit-len(content), len(content)))
		}
		n, err := unix.Read(fd, content[len(content):min(cap(content), limit)])
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		content = content[:len(content)+n]
	}
	return content, nil
}

// Names returns the names in a directory, without "." and "..".
func Names(path string) ([]string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var names []string
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
