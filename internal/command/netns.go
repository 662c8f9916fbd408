// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotNetns: there is a file, and it is not a network namespace.
var ErrNotNetns = errors.New("not a network namespace")

// EnterNetns moves the calling thread, and no other, into the network namespace that a file names: /run/netns/NAME as
// "ip netns add" makes it, or /proc/PID/ns/net. The caller must be locked to its thread (runtime.LockOSThread), and must
// not unlock it: the thread, so that the runtime discards it instead of reusing it in the wrong namespace. It needs CAP_SYS_ADMIN, here and over that namespace, see
// setns(2). The error is ErrNotNetns, or wraps the errno.
func EnterNetns(path string) error {
	// Looked at before it is opened, because opening a device or a FIFO does something.
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if fs.Type != unix.NSFS_MAGIC {
		return &os.PathError{Op: "enter", Path: path, Err: ErrNotNetns}
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	// The kernel compares the kinds first. Its ioctl for that is not there for 32-bit programs on a 64-bit 6.1.
	switch err := unix.Setns(fd, unix.CLONE_NEWNET); {
	case errors.Is(err, unix.EINVAL):
		return &os.PathError{Op: "enter", Path: path, Err: ErrNotNetns}
	case err != nil:
		return &os.PathError{Op: "enter", Path: path, Err: err}
	}
	return nil
}
