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
			for n := b.rules.Min; n <= min(b.rules.Max, 3); n++ {
				all = append(all, backend{hint: h, canary: c, rules: exactly(n)})
			}
		}
	}
	return all
}

// plainly is what a host of which everything is known proves, written as the design states it: "" is nothing. A guess that the
// container remembers is no proof, and hides the rules. Where somebody guessed, rules are no proof.
func plainly(nft, legacy backend, remembered Memory, guessed bool) Mode {
	for i, found := range [][2]bool{
		{nft.hint == Yes, legacy.hint == Yes},
		{nft.canary == Yes, legacy.canary == Yes},
		{remembered.Mode == NFT, remembered.Mode == Legacy},
		{nft.rules.Min >= legacy.rules.Min && nft.rules.Min > 0, legacy.rules.Min > nft.rules.Min},
	} {
		switch {
		case (found[0] || found[1]) && (i == 2 && !remembered.Conclusive || i == 3 && guessed):
			return ""
		case found[0]:
			return NFT
		case found[1]:
			return Legacy
		}
	}
	return ""
}

// An answer is conclusive exactly if every host that what is known could describe has that answer.
func TestConclusiveIsWhatNothingCouldOverturn(t *testing.T) {
	var sides []backend
	for _, h := range []Answer{NotAsked, Unknown, No, Yes} {
		for _, c := range []Answer{NotAsked, Unknown, No, Yes} {
			for _, n := range []Count{{0, 0}, {1, 1}, {2, 2}, {0, 2}, {1, 2}, {0, Unbounded}, {1, Unbounded}, {2, Unbounded}} {
				sides = append(sides, backend{hint: h, canary: c, rules: n, likely: n.Min}, backend{hint: h, canary: c, rules: n, likely: min(n.Max, n.Min+2)})
			}
		}
	}
	for _, known := range []Query{
		{}, {Guessed: "x"}, {Remembered: guess(NFT)}, {Remembered: guess(Legacy)}, {Remembered: certain(NFT)}, {Remembered: certain(Legacy), Guessed: "x"},
	} {
		conclusive, rows := 0, map[Reason]int{}
		for _, nft := range sides {
			for _, legacy := range sides {
				var modes []Mode
				for _, n := range complete(nft) {
					for _, l := range complete(legacy) {
						if m := plainly(n, l, known.Remembered, known.Guessed != ""); !slices.Contains(modes, m) {
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
				if rows[got.reason]++; got.conclusive {
					conclusive++
				}
			}
		}
		if conclusive == 0 || conclusive == len(sides)*len(sides) || (rows[Remembered] > 0) != (known.Remembered.Mode != "") ||
			known.Remembered.Mode != "" && rows[RuleCount] > 0 {
			t.Fatalf("%+v: %d cases conclusive, %v: the test does not tell them apart", known, conclusive, rows)
		}
	}
}
