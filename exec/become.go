// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Exit statuses of a command that could not be run, as shells and env(1) give them. Status 1 is never used: clients of
// iptables read it as "there is no such rule".
const (
	StatusUnusable = 126 // it was found and cannot be run
	StatusMissing  = 127 // it was not found
)

// Status returns the exit status for an error of Program or Become.
func Status(err error) int {
	if errors.Is(err, ErrMissing) {
		return StatusMissing
	}
	return StatusUnusable
}

// Become replaces this process by a program: the same process id, descriptors, environment, working directory, limits,
// and, with ReleaseSignals before, signals. It must be called on the process' first thread. It returns only if that
// fails.
//
// It goes through syscall.Exec, which puts back the limit of open files that the Go runtime raised at its start. What
// cannot be put back, because the runtime changes it before any code of ours runs: a standard descriptor that was closed
// is open on /dev/null; of the signals that the caller blocks, those that the runtime does not leave blocked (_SigUnblock in
// its sigtable: SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGTERM, SIGCHLD, SIGPROF, those of faults, 32 to 34) are lost if they
// come before execve, and end the process if they were pending at its start; SIGURG is its own, and lost.
func Become(path string, argv []string) error {
	restoreSignals()
	return &os.PathError{Op: "execve", Path: path, Err: unix.Exec(path, argv, environment())}
}
