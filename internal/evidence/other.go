// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package evidence

import (
	"errors"
	"fmt"
	"runtime"
)

// Ask answers the query. On this system everything is unknown.
func (q Query) Ask() Result {
	var unknown Backend
	for i := range unknown {
		unknown[i].Err = fmt.Errorf("detect the backend of iptables on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	return Result{Decision: q.Decide(unknown, unknown), NFT: unknown, Legacy: unknown}
}

// Denied reports whether a question was refused for a lack of rights.
func (r Result) Denied() bool { return false }

// No error here is the kernel's answer to a question.

func momentary(error) bool { return false }

func missingFor(error) string { return "" }
