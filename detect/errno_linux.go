// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"syscall"
)

// momentary reports whether the same question may be answered at the next moment.
func momentary(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.ENFILE, syscall.EMFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN:
		return true
	}
	return false
}

// missingFor says what a process needs that met with the error.
func missingFor(err error) string {
	var errno syscall.Errno
	errors.As(err, &errno)
	return map[syscall.Errno]string{
		syscall.EPERM:  ": CAP_NET_ADMIN is missing",
		syscall.EACCES: ": run as root or with group 0, or add CAP_DAC_READ_SEARCH",
		syscall.ENOENT: ": /proc is missing",
	}[errno]
}
