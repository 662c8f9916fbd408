// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

var (
	// ErrMissing means that there is no program for the command and backend.
	ErrMissing = programs.ErrMissing
	// ErrRecursion means that the program is the wrapper itself.
	ErrRecursion = programs.ErrRecursion
)

// Exit statuses of a command that could not be run, as shells and env(1) use them. The wrapper never exits with 1,
// which clients of iptables take for "no such rule".
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
