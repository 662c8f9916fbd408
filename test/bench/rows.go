// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
)

// counts are on the picture's axes.
var counts = []int{0, 5_000, 20_000, 100_000}

// nothing is the row of a host that has neither a marker nor a rule.
const nothing = "nothing"

// curve is a row for each count: rules in one chain, or chains of one rule.
type curve struct {
	name, backend string
	hint          bool
	chains        bool
}

var curves = []curve{
	{"hint, nft", "nft", true, false}, {"hint, nft", "nft", true, true},
	{"hint, legacy", "legacy", true, false}, {"hint, legacy", "legacy", true, true},
	{"no hint, nft", "nft", false, false}, {"no hint, nft", "nft", false, true},
	{"no hint, legacy", "legacy", false, false}, {"no hint, legacy", "legacy", false, true},
}

func (c curve) row(count int) measure.Row {
	r := measure.Row{Backend: c.backend, Hint: c.hint, Saves: !c.hint && !c.chains}
	if count == 0 && !c.hint { // nothing at all: where the curves without a hint begin
		r.Name, r.Backend, r.Saves, r.OnPage = nothing, "nft", true, true
		return r
	}
	size := measure.Size{Rules: count, Chains: 1}
	r.Name = fmt.Sprintf("%s: %s rules", c.name, thousands(count))
	if c.chains && count > 0 {
		r.Name = fmt.Sprintf("%s: %s chains of one rule", c.name, thousands(count))
		size.Chains = count
	}
	if c.backend == "nft" {
		r.NFT = size
	} else {
		r.Legacy = size
	}
	return r
}

// rows are what is measured. What a host has in large numbers is divided by scale.
func rows(scale int) (all []measure.Row) {
	for _, c := range curves {
		for _, count := range counts {
			r := c.row(count / scale)
			r.OnPage = r.OnPage || !c.chains && count == counts[len(counts)-1] || c == curves[0] && count == 0
			if !slices.ContainsFunc(all, func(other measure.Row) bool { return other.Name == r.Name }) {
				all = append(all, r)
			}
		}
	}
	size := func(rules, chains int) measure.Size {
		return measure.Size{Rules: max(1, rules/scale), Chains: max(1, chains/scale)}
	}
	few, many := size(5_000, 1), size(100_000, 1)
	return append(all,
		measure.Row{Name: "no hint, legacy: %d rules in %d chains", Backend: "legacy", Legacy: size(20_000, 5_000)},
		measure.Row{Name: "no hint: 1 rule in nft, %d in legacy", Backend: "legacy", NFT: size(1, 1), Legacy: many},
		measure.Row{
			Name:    "no hint: %d rules in nft, as many but one in legacy",
			OnPage:  true,
			Backend: "nft",
			NFT:     few,
			Legacy:  measure.Size{Rules: few.Rules - 1, Chains: 1},
		},
		measure.Row{Name: "no hint, IPv6: %d rules in nft", Backend: "nft", NFT: few, IPv6: true},
		measure.Row{Name: "a program of the host in nft", Backend: "nft", Program: true, OnPage: true},
		measure.Row{Name: "a program of the host in legacy", Backend: "legacy", Program: true},
		measure.Row{
			Name:    "a program of the host in nft: %d rules in nft, as many but one in legacy",
			Backend: "nft",
			Program: true,
			NFT:     few,
			Legacy:  measure.Size{Rules: few.Rules - 1, Chains: 1},
		},
		measure.Row{
			Name:    "no hint, legacy: 140 rules",
			Backend: "legacy",
			Legacy:  measure.Size{Rules: 140, Chains: 1},
		},
		measure.Row{Name: "hint, read-only root", Backend: "nft", Hint: true, ReadOnly: true},
		measure.Row{
			Name:     "hint, read-only root, recorded",
			OnPage:   true,
			Backend:  "nft",
			Hint:     true,
			ReadOnly: true,
			Recorded: true,
		},
		measure.Row{Name: "no hint, read-only root: %d rules in nft", Backend: "nft", NFT: few, ReadOnly: true},
		measure.Row{
			Name:     "no hint, read-only root, recorded: %d rules in nft",
			Backend:  "nft",
			NFT:      few,
			ReadOnly: true,
			Recorded: true,
		},
		measure.Row{
			Name:     "no marker, read-only root, recorded: %d rules in legacy",
			OnPage:   true,
			Backend:  "legacy",
			Legacy:   few,
			ReadOnly: true,
			Recorded: true,
		},
		measure.Row{
			Name:     "nothing, read-only root, recorded",
			OnPage:   true,
			Backend:  "nft",
			ReadOnly: true,
			Recorded: true,
		},
		measure.Row{Name: "hint, cold page cache", Backend: "nft", Hint: true, Cold: true, OnPage: true},
		measure.Row{Name: "hint, 300 mounts", Backend: "nft", Hint: true, Mounts: 300},
		measure.Row{
			Name:     "hint, read-only root, 20 calls at once",
			OnPage:   true,
			Backend:  "nft",
			Hint:     true,
			ReadOnly: true,
			AtOnce:   20,
		},
		measure.Row{Name: "hint, 10 % of a processor", Backend: "nft", Hint: true, Percent: 10, OnPage: true},
		measure.Row{
			Name:    "no hint, 16 MiB: 1 rule in nft, %d in legacy",
			Backend: "legacy",
			NFT:     size(1, 1),
			Legacy:  many,
			MiB:     16,
		},
		measure.Row{
			Name:     "hint, read-only root: a script of %d calls",
			OnPage:   true,
			Backend:  "nft",
			Hint:     true,
			ReadOnly: true,
			Calls:    max(10, 1700/scale),
		},
	)
}

// title is a row's name with its numbers.
func title(r measure.Row) string {
	var numbers []any
	for _, n := range []int{r.Calls, max(r.NFT.Rules, r.Legacy.Rules), max(r.NFT.Chains, r.Legacy.Chains)} {
		if n > 0 && len(numbers) < strings.Count(r.Name, "%d") {
			numbers = append(numbers, thousands(n))
		}
	}
	return fmt.Sprintf(strings.ReplaceAll(strings.ReplaceAll(r.Name, " % ", " %% "), "%d", "%s"), numbers...)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
