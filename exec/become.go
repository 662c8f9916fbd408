// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
)

// Exit statuses of a command that could not be run, as shells and env(1) use them. The wrapper never exits with 1, which
// clients of iptables take for "no such rule".
const (
	StatusUnusable = 126 // the program exists and cannot be executed
	StatusMissing  = 127 // there is no such program
)

// Status returns the exit status for an error of Find or Become.
func Status(err error) int {
	if errors.Is(err, ErrMissing) {
		return StatusMissing
	}
	return StatusUnusable
}

// Become replaces this process with a program by execve(2): the process ID, descriptors, environment, working directory,
// limits, and ignored and blocked signals stay. Call it on the process' first thread. It returns only if execve fails.
//
// It goes through syscall.Exec, which restores the limit on open files that the Go runtime raised when it started. Some
// things the runtime changes before any code of ours runs. A standard descriptor that was closed is open on /dev/null. Of
// the signals that the caller blocks, those that the runtime unblocks (_SigUnblock in its sigtable: SIGHUP, SIGINT,
// SIGQUIT, SIGABRT, SIGTERM, SIGCHLD, SIGPROF, those of faults, 32 to 34) are lost if they arrive before execve, and
// terminate the process if they were pending when it started. SIGURG is the runtime's own, and lost.
func Become(path string, argv []string) error {
	process.RestoreSignals()
	return &os.PathError{Op: "execve", Path: path, Err: unix.Exec(path, argv, process.Environment())}
}
