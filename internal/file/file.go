// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package file answers questions about files: may one be run as root, is it the running one, what is in it.
package file

import (
	"errors"
	"os"
	"slices"

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

// Read returns the first bytes of a file, at most limit. Package os would start the runtime's poller, which costs more
// descriptors than a call may have: the runtime then ends the process.
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
