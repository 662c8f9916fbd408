// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package exec

import (
	"fmt"
	"runtime"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// find finds nothing: iptables is a program of Linux.
func find(_ []string, _ detect.Mode, name string) (string, error) {
	return "", fmt.Errorf("%w: %s on %s", ErrMissing, name, runtime.GOOS)
}
