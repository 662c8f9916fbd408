// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"time"
)

// Wait answers the query every PollInterval until there is a conclusive answer of the kind that WaitFor names, or ctx is done,
// and returns the last answer. An Override ends it at once. A dry run is made only when ctx is done, for the guess.
//
// The error is nil if what was waited for has come, or with an Override. Else it is the one of ctx. The caller must be locked
// to its thread if that has entered another namespace.
func (q Query) Wait(ctx context.Context) (Result, error) { return q.wait(ctx, Query.Run) }

func (q Query) wait(ctx context.Context, run func(Query) Result) (Result, error) {
	if q.Override.exists() {
		return run(q), nil
	}
	look := q
	look.DryRun = q.DryRun && q.Everything // Everything wants its result, too
	for {
		r := run(look)
		if q.WaitFor.Ended(r) {
			return r, nil
		}
		select {
		case <-time.After(PollInterval):
			continue
		case <-ctx.Done():
		}
		// A dry run makes no answer conclusive, so once, for the guess, is enough.
		if look != q {
			if r = run(q); q.WaitFor.Ended(r) {
				return r, nil
			}
		}
		return r, ctx.Err()
	}
}

// Ended reports whether a result is what was waited for. What kubelet's chains said earlier will do.
func (w WaitFor) Ended(r Result) bool {
	return r.Conclusive && (w != ForKubelet || r.Reason.Kubelet() || r.Remembered != nil && r.Remembered.Reason.Kubelet())
}
