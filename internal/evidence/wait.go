// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"time"
)

const pollInterval = 200 * time.Millisecond

// Wait asks five times a second until a result is enough, and returns it. If ctx is done before, it returns the last
// result and the error of ctx. It asks at least once. A caller whose thread has entered another network namespace must
// be locked to it.
func Wait(ctx context.Context, ask func() Result, enough func(Result) bool) (Result, error) {
	for {
		r := ask()
		if enough(r) {
			return r, nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}
