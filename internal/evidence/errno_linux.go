// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"errors"
	"slices"
	"syscall"
)

// momentary reports whether the next call may get an answer to the question that failed with this error.
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

// missingFor says what a process lacks that meets with the error, "" if that is not known.
func missingFor(err error) string {
	var errno syscall.Errno
	errors.As(err, &errno)
	switch errno {
	case syscall.EPERM:
		return ": CAP_NET_ADMIN is missing, or does not count here"
	case syscall.EACCES:
		return ": run as root or with group 0, or add CAP_DAC_READ_SEARCH"
	case syscall.ENOENT:
		return ": /proc is missing"
	}
	return ""
}

// Denied reports whether a question was refused for a lack of rights: with EPERM by the kernel, or with EACCES for a file
// of /proc.
func (r Result) Denied() bool {
	return slices.ContainsFunc(r.errs(), func(err error) bool {
		return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
	})
}
