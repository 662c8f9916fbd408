// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package exec

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

var (
	// ErrMissing means that there is no program for the command and backend.
	ErrMissing = errors.New("no such program")
	// ErrRecursion means that the program is the wrapper itself.
	ErrRecursion = errors.New("it is the wrapper itself")
)

// Find finds nothing on this system.
func Find(_ detect.Mode, name string) (string, error) {
	return "", fmt.Errorf("%w: %s on %s", ErrMissing, name, runtime.GOOS)
}

// Become cannot replace a process on this system.
func Become(path string, _ []string) error {
	return &os.PathError{Op: "execve", Path: path, Err: errors.ErrUnsupported}
}
