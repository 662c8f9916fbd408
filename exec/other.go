// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package exec

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Find finds nothing on this system.
func Find(_ detect.Mode, name string) (string, error) {
	return "", fmt.Errorf("%w: %s on %s", ErrMissing, name, runtime.GOOS)
}

// Become cannot replace a process on this system.
func Become(path string, _ []string) error {
	return &os.PathError{Op: "execve", Path: path, Err: errors.ErrUnsupported}
}
