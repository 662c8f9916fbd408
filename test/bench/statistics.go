// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
)

// summary is a median with its confidence interval of 95 %.
func summary(values []float64) benchmath.Summary {
	s := benchmath.AssumeNothing.Summary(sample(values), 0.95)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) { // too few values for an interval
		s.Lo, s.Hi = slices.Min(values), slices.Max(values)
	}
	return s
}

func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

func values(costs []measure.Cost, metric int) (all []float64) {
	for _, c := range costs {
		all = append(all, c[metric])
	}
	return all
}

// over returns what a program costs more than the direct call of the same round: a machine that is slow for a while is
// slow for both.
func over(r measure.Result, program string, metric int) []float64 {
	all := values(r.Samples[program], metric)
	for i := range all {
		all[i] -= r.Samples["direct"][i][metric]
	}
	return all
}

// change compares the wrapper with the revision before: "~" if the difference may be chance.
func change(r measure.Result, metric int) string {
	before, now := sample(values(r.Samples["before"], metric)), sample(values(r.Samples["wrapped"], metric))
	c := benchmath.AssumeNothing.Compare(before, now)
	return c.FormatDelta(summary(before.Values).Center, summary(now.Values).Center)
}

func plus(s benchmath.Summary) string {
	return fmt.Sprintf("%+.2f [%.2f–%.2f]", s.Center, s.Lo, s.Hi)
}
