// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package file checks whether only root and the caller can change a file, and whether it is the running one, and reads
// files for a call that has few descriptors left.
package file

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrExposed means that a directory is not trusted: other users could replace the files in it.
var ErrExposed = errors.New("users other than root and the caller can write it")

// Trusted reports whether a file or directory belongs to a trusted user, and no other user can write it. No group may
// write it either, not even group 0, because other users' containers often run in it.
func Trusted(st unix.Stat_t) bool {
	const othersWrite = 0o022
	return st.Mode&othersWrite == 0 && TrustedUser(st.Uid)
}

// TrustedUser reports whether a user is root, the caller, or the owner of the root directory, who could replace all
// that is below it. In a user namespace that does not map root, such as rootlesskit's, the files of root are nobody's,
// and so is the root directory.
func TrustedUser(uid uint32) bool {
	if uid == 0 || int(uid) == unix.Geteuid() {
		return true
	}
	var root unix.Stat_t
	err := unix.Stat("/", &root)
	return err == nil && root.Uid == uid
}

// Running leads to the running file, if there is a /proc.
const Running = "/proc/self/exe"

// IsAt reports whether a path leads to a file, by device and inode.
func IsAt(path string, st unix.Stat_t) bool {
	var there unix.Stat_t
	err := unix.Stat(path, &there)
	return err == nil && there.Dev == st.Dev && there.Ino == st.Ino
}

// Open opens a file or a directory for reading. os.Open would start the runtime's poller, which needs more descriptors,
// and if there are too few, the runtime ends the process.
func Open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Read returns the first bytes of a file, at most limit.
func Read(path string, limit int) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const usual = 8 << 10 // in one piece: io.ReadAll would begin with 512 bytes
	content := bytes.NewBuffer(make([]byte, 0, min(limit+bytes.MinRead, usual)))
	_, err = content.ReadFrom(io.LimitReader(f, int64(limit)))
	return content.Bytes(), err
}
