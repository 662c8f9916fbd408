// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package detect

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

var errNotLinux = fmt.Errorf("detect the backend of iptables on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Run answers the query. On this system everything is unknown.
func (q Query) Run() Result {
	evidence := unasked()
	for i := range evidence {
		e := &evidence[i]
		e.Supported, e.Hint, e.Canary, e.HostChain, e.HostTable = Unknown, Unknown, Unknown, Unknown, Unknown
		e.fail(errNotLinux)
	}
	return q.result(evidence)
}

// Wait answers the query. On this system there is nothing to wait for.
func (q Query) Wait(context.Context) (Result, error) {
	if q.Override.exists() {
		return q.Run(), nil
	}
	return q.Run(), errNotLinux
}

// No error here is the kernel's answer to a question.

func momentary(error) bool { return false }

func missingFor(error) string { return "" }
