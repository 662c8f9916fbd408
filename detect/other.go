//go:build !linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// PollInterval is how long Wait may overlook a change of legacy's tables, which the kernel does not report.
const PollInterval = time.Second

var errNotLinux = &failure{"detect iptables on " + runtime.GOOS, errors.ErrUnsupported}

// Run answers the query. On this system everything is unknown.
func (q Query) Run() Result {
	evidence := unasked()
	for i := range evidence {
		e := &evidence[i]
		e.Supported, e.Hint, e.Canary, e.Err = Unknown, Unknown, Unknown, errNotLinux
	}
	return q.result(evidence)
}

// Wait answers the query. On this system it has nothing to wait for.
func (q Query) Wait(context.Context) (Result, error) { return q.Run(), errNotLinux }
