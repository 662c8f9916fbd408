// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
	"testing"
)

// complete lists every state that a backend can be in, given what is known of it. Three rules stand for any number.
func complete(b backend) []backend {
	answers := func(a Answer) []Answer {
		if a == Yes || a == No {
			return []Answer{a}
		}
		return []Answer{Yes, No}
	}
	var all []backend
	for _, h := range answers(b.hint) {
		for _, c := range answers(b.canary) {
			for _, chain := range answers(b.hostChain) {
				for _, table := range answers(b.hostTable) {
					for n := b.rules.Min; n <= min(b.rules.Max, 3); n++ {
						all = append(all, backend{hint: h, canary: c, hostChain: chain, hostTable: table,
							rules: exactly(n)})
					}
				}
			}
		}
	}
	return all
}

// plainly is what a host of which everything is known proves, written as the design states it: "" is nothing. A guess
// that the container remembers is no proof, and hides the rules. Where somebody guessed, rules are no proof.
func plainly(nft, legacy backend, remembered Memory, guessed bool) Mode {
	switch {
	case nft.hint == Yes:
		return NFT
	case legacy.hint == Yes:
		return Legacy
	case nft.canary == Yes:
		return NFT
	case legacy.canary == Yes:
		return Legacy
	case remembered.Mode != "" && !remembered.Conclusive:
		return ""
	case remembered.Mode != "":
		return remembered.Mode
	}

	more := NFT
	switch {
	case legacy.rules.Min > nft.rules.Min:
		more = Legacy
	case nft.rules.Min == 0:
		more = ""
	}
	switch {
	case legacy.hostChain == Yes && (nft.hostChain == Yes || nft.hostTable == Yes):
		return ""
	case nft.hostChain == Yes:
		return NFT
	case legacy.hostChain == Yes:
		return Legacy
	case nft.hostTable == Yes && legacy.rules.Min == 0:
		return NFT
	case nft.hostTable == Yes && more == Legacy, guessed:
		return ""
	}
	return more
}

// An answer is conclusive exactly if every host that what is known could describe has that answer.
func TestConclusiveIsWhatNothingCouldOverturn(t *testing.T) {
	var sides []backend
	answers := []Answer{NotAsked, Unknown, No, Yes}
	counted := func(b backend) {
		for _, n := range []Count{{0, 0}, {1, 1}, {2, 2}, {0, 2}, {1, 2}, {0, Unbounded}, {1, Unbounded},
			{2, Unbounded}} {
			b.rules = n
			b.likely = n.Min
			sides = append(sides, b)
			b.likely = min(n.Max, n.Min+2)
			sides = append(sides, b)
		}
	}
	for _, one := range answers {
		for _, other := range answers {
			counted(backend{hint: one, canary: other, hostChain: No, hostTable: No})
			counted(backend{hint: No, canary: No, hostChain: one, hostTable: other})
		}
	}
	for _, known := range []Query{
		{},
		{Doubt: "x"},
		{Remembered: guess(NFT)},
		{Remembered: guess(Legacy)},
		{Remembered: certain(NFT)},
		{Remembered: certain(Legacy), Doubt: "x"},
	} {
		conclusive, rows := 0, map[Reason]int{}
		for _, nft := range sides {
			for _, legacy := range sides {
				legacy.hostTable = No // there is no such thing
				var modes []Mode
				for _, n := range complete(nft) {
					for _, l := range complete(legacy) {
						if m := plainly(n, l, known.Remembered, known.Doubt != ""); !slices.Contains(modes, m) {
							modes = append(modes, m)
						}
					}
				}
				want := len(modes) == 1 && modes[0] != ""
				got := known.decide(nft, legacy)
				if got.conclusive != want || want && got.mode != modes[0] {
					t.Fatalf("nft %+v, legacy %+v, %+v: got %v; possible are %v", nft, legacy, known, got, modes)
				}
				if got.reason == Remembered && got.mode != known.Remembered.Mode {
					t.Fatalf("%+v: got %v", known, got)
				}
				rows[got.reason]++
				if got.conclusive {
					conclusive++
				}
			}
		}
		if conclusive == 0 || conclusive == len(sides)*len(sides) ||
			(rows[Remembered] > 0) != (known.Remembered.Mode != "") ||
			known.Remembered.Mode != "" && rows[RuleCount] > 0 {
			t.Fatalf("%+v: %d cases conclusive, %v: the test does not tell them apart", known, conclusive, rows)
		}
	}
}
