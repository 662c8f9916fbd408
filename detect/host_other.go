// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package detect

import (
	"errors"
	"fmt"
	"runtime"
)

// Host returns a guess, and an error that wraps errors.ErrUnsupported: only Linux has iptables.
func Host(held Backend) (Result, error) {
	err := fmt.Errorf("detect the backend of iptables on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	unknown := Findings{Kernel: Unknown, Err: err}
	return Decide(Evidence{NFT: unknown, Legacy: unknown}, held), err
}

// Survey is Host with nothing held.
func Survey() (Result, error) { return Host("") }
