// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A dry run never makes an answer conclusive, so it is made once, at the end, however often the host changes.
func TestWaitMakesOneDryRun(t *testing.T) {
	for _, test := range []struct {
		doc        string
		q          Query
		conclusive int // which question is answered conclusively, counted from 1
		dryRuns    int
		err        error
	}{
		{"the end of ctx", Query{DryRun: true}, 0, 1, context.Canceled},
		{"without one", Query{}, 0, 0, context.Canceled},
		{"a conclusive answer", Query{DryRun: true}, 3, 0, nil},
		{"a conclusive answer to the last question", Query{DryRun: true}, 5, 1, nil},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked, dryRuns := 0, 0
			r, err := test.q.wait(ctx, func(q Query) Result {
				if asked++; asked == 4 {
					cancel()
				} else { // wakes it
					host.Run(t, "nft", "add table ip t; delete table ip t")
				}
				if q.DryRun {
					dryRuns++
				}
				return Result{Conclusive: asked == test.conclusive}
			})
			if dryRuns != test.dryRuns || r.Conclusive != (test.err == nil) || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("got %d dry runs, conclusive %v, %v after %d questions", dryRuns, r.Conclusive, err, asked)
			}
		})
	}
}
