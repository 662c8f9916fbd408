// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A dry run never makes an answer conclusive, so it is made once, at the end, however often the host is asked.
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
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start, asked, dryRuns := time.Now(), 0, 0
			r, err := test.q.wait(ctx, func(q Query) Result {
				if due := time.Duration(min(asked, 3)) * PollInterval; time.Since(start) != due {
					t.Errorf("%s: question %d after %v, want %v", test.doc, asked, time.Since(start), due)
				}
				asked++
				if asked == 4 {
					cancel()
				}
				if q.DryRun {
					dryRuns++
				}
				return Result{Conclusive: asked == test.conclusive}
			})
			if dryRuns != test.dryRuns || r.Conclusive != (test.err == nil) || !errors.Is(err, test.err) ||
				(err == nil) != (test.err == nil) {
				t.Errorf("%s: got %d dry runs, conclusive %v, %v after %d questions", test.doc, dryRuns, r.Conclusive,
					err, asked)
			}
		})
	}
}

// Leftovers of another mode, or what is remembered, end the wait for anything, and not the wait for kubelet.
func TestWaitFor(t *testing.T) {
	answers := []Result{
		{Reason: Default}, {Reason: Remembered}, {Reason: KubeletHint}, // not conclusive: nft was not asked
		{Reason: Remembered, Conclusive: true}, {Reason: RuleCount, Conclusive: true}, {Reason: KubeletCanary,
			Conclusive: true}, {Reason: KubeletHint, Conclusive: true},
	}
	for _, test := range []struct {
		from int
		what WaitFor
		want int
	}{{0, ForAny, 3}, {4, ForAny, 4}, {0, ForKubelet, 5}, {6, ForKubelet, 6}} {
		synctest.Test(t, func(t *testing.T) {
			next := test.from - 1
			r, err := Query{WaitFor: test.what}.wait(t.Context(), func(Query) Result { next++; return answers[next] })
			if err != nil || next != test.want || r.Reason != answers[next].Reason {
				t.Errorf("%q from %d: got %v, %v, answer %d, want %d", test.what, test.from, r, err, next, test.want)
			}
		})
	}
}

// What the caller has set needs no waiting for, conclusive or not.
func TestWaitOverride(t *testing.T) {
	host.Netns(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if r, err := (Query{Override: Legacy}).Wait(ctx); r.Mode != Legacy || r.Reason != Override || err != nil {
		t.Errorf("got %v, %v", r, err)
	}
	if r, err := (Query{Override: "auto"}).Wait(ctx); r.Reason != Default || r.Of(NFT, IPv4).Hint != No ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a mode that there is not: got %v, %v", r, err)
	}
}

// A mode that there is not is none: it neither keeps questions from being asked nor decides.
func TestUnknownModes(t *testing.T) {
	host.Netns(t)
	for _, m := range []Mode{"auto", "NFT", "legacy ", "nft\n"} {
		for _, q := range []Query{{Override: m}, {Remembered: Memory{Mode: m}}, {Installed: m}} {
			q.DryRun = true
			if r := q.Run(); r.Reason != Default || r.Of(NFT, IPv4).Features == nil {
				t.Errorf("%+v: got %v, %+v", q, r, r.Evidence)
			}
		}
	}
	host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
	for _, q := range []Query{{Override: "auto"}, {Remembered: Memory{Mode: "auto"}}, {Installed: "auto"}} {
		if r := q.Run(); r.Mode != Legacy || r.Reason != RuleCount || !r.Conclusive {
			t.Errorf("%+v: got %v, conclusive %v", q, r, r.Conclusive)
		}
	}
}

// Kubelet's reasons are those that are named after it. Who waits for kubelet's chains waits for any of them.
func TestKubeletReasons(t *testing.T) {
	for _, r := range Reasons() {
		if want := strings.HasPrefix(string(r), "kubelet-"); r.Kubelet() != want {
			t.Errorf("Kubelet, in decide.go, is %v for %s, want %v", r.Kubelet(), r, want)
		}
	}
}
