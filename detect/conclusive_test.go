// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
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
// that the container remembers is no proof, and hides the rules.
func plainly(nft, legacy backend, remembered Memory) Mode {
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
	case nft.hostTable == Yes && more == Legacy:
		return ""
	}
	return more
}

// known is a backend as far as it is known, with every state that it can be in.
type known struct {
	backend
	states []backend
}

// knownSides are backends of which something is known: of kubelet's chains, or of programs of the host, and of the
// rules.
func knownSides(hostTables []Answer) (sides []known) {
	counts := []Count{{0, 0}, {1, 1}, {2, 2}, {0, 2}, {1, 2}, {0, Unbounded}, {1, Unbounded}, {2, Unbounded}}
	add := func(b backend) {
		for _, n := range counts {
			b.rules = n
			states := complete(b)
			for _, likely := range []int{n.Min, min(n.Max, n.Min+2)} {
				b.likely = likely
				sides = append(sides, known{b, states})
			}
		}
	}
	answers := []Answer{NotAsked, Unknown, No, Yes}
	for _, hint := range answers {
		for _, canary := range answers {
			add(backend{hint: hint, canary: canary, hostChain: No, hostTable: No})
		}
	}
	for _, chain := range answers {
		for _, table := range hostTables {
			add(backend{hint: No, canary: No, hostChain: chain, hostTable: table})
		}
	}
	return sides
}

// An answer is conclusive exactly if every host that what is known could describe has that answer.
func TestConclusiveIsWhatNothingCouldOverturn(t *testing.T) {
	nftSides := knownSides([]Answer{NotAsked, Unknown, No, Yes})
	legacySides := knownSides([]Answer{No}) // no table of nftables is in legacy
	for _, q := range []Query{
		{},
		{Remembered: guess(NFT)},
		{Remembered: guess(Legacy)},
		{Remembered: certain(NFT)},
		{Remembered: certain(Legacy)},
	} {
		t.Run(fmt.Sprintf("%q remembered, certain %v", q.Remembered.Mode, q.Remembered.Conclusive), func(t *testing.T) {
			t.Parallel()
			conclusive := 0
			rows := map[Reason]int{}
			for _, nft := range nftSides {
				for _, legacy := range legacySides {
					got := q.decide(nft.backend, legacy.backend)
					checkConclusive(t, q, nft, legacy, got)
					rows[got.reason]++
					if got.conclusive {
						conclusive++
					}
				}
			}
			if conclusive == 0 || conclusive == len(nftSides)*len(legacySides) ||
				(rows[Remembered] > 0) != (q.Remembered.Mode != "") ||
				q.Remembered.Mode != "" && rows[RuleCount] > 0 {
				t.Fatalf("%d cases conclusive, %v: the test does not tell them apart", conclusive, rows)
			}
		})
	}
}

func checkConclusive(t *testing.T, q Query, nft, legacy known, got row) {
	t.Helper()
	var modes []Mode
	for _, n := range nft.states {
		for _, l := range legacy.states {
			mode := plainly(n, l, q.Remembered)
			if !slices.Contains(modes, mode) {
				modes = append(modes, mode)
			}
		}
	}
	want := len(modes) == 1 && modes[0] != ""
	if got.conclusive != want || want && got.mode != modes[0] {
		t.Fatalf("nft %+v, legacy %+v, %+v: got %v; possible are %v", nft.backend, legacy.backend, q, got, modes)
	}
	if got.reason == Remembered && got.mode != q.Remembered.Mode {
		t.Fatalf("%+v: got %v", q, got)
	}
}
