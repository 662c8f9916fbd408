// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// Become replaces this process with a program by execve(2): the process ID, descriptors, working directory and limits
// stay, and the environment to the last byte. Call it on the process' first thread. It returns only if execve fails.
//
// It goes through syscall.Exec, which restores the limit on open files that the runtime raised when it started.
func Become(path string, argv []string) error {
	RestoreMask()
	return &os.PathError{Op: "execve", Path: path, Err: unix.Exec(path, argv, Environment())}
}
