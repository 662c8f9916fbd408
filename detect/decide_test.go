// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
	"testing"
)

// blank is a backend of which everything is known: it has nothing.
var blank = side{supported: Yes, hint: No, canary: No}

func with(change ...func(*side)) side {
	s := blank
	for _, c := range change {
		c(&s)
	}
	return s
}

func hintIs(a Answer) func(*side)      { return func(s *side) { s.hint = a } }
func canaryIs(a Answer) func(*side)    { return func(s *side) { s.canary = a } }
func supportedIs(a Answer) func(*side) { return func(s *side) { s.supported = a } }
func installedIs(a Answer) func(*side) { return func(s *side) { s.installed = a } }
func compatIs(a Answer) func(*side)    { return func(s *side) { s.compat = a } }
func between(min, max int) func(*side) { return func(s *side) { s.rules = Count{min, max} } }

// unread is a backend that nothing could be read of.
func unread(s *side) {
	*s = side{supported: Unknown, hint: Unknown, canary: Unknown, rules: Count{0, Unbounded}}
}

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		doc         string
		override    Mode
		nft, legacy side
		mode        Mode
		reason      Reason
		conclusive  bool
	}{
		{"0: asked for, against all evidence", Legacy, with(hintIs(Yes)), blank, Legacy, Override, false},
		{"0: asked for, nothing read", NFT, with(unread), with(unread), NFT, Override, false},

		{"1: hint in nft", "", with(hintIs(Yes)), blank, NFT, KubeletHint, true},
		{"1: hint in nft, legacy unread", "", with(hintIs(Yes)), with(unread), NFT, KubeletHint, true},
		{"1: hint in legacy", "", blank, with(hintIs(Yes)), Legacy, KubeletHint, true},
		{"1: hint in legacy, nft unread", "", with(unread), with(hintIs(Yes)), Legacy, KubeletHint, false},
		{"1: hint in legacy, more rules in nft", "", with(between(9, 9)), with(hintIs(Yes)), Legacy, KubeletHint, true},
		{"1: hint in legacy, stale canary in nft", "", with(canaryIs(Yes)), with(hintIs(Yes)), Legacy, KubeletHint, true},
		{"1: hint in nft, stale canary in legacy", "", with(hintIs(Yes)), with(canaryIs(Yes)), NFT, KubeletHint, true},
		{"1b: hint in both", "", with(hintIs(Yes)), with(hintIs(Yes)), NFT, KubeletHint, true},

		{"2: canary in nft", "", with(canaryIs(Yes)), blank, NFT, KubeletCanary, true},
		{"2: canary in nft, legacy unread", "", with(canaryIs(Yes)), with(unread), NFT, KubeletCanary, false},
		{"2: canary in legacy", "", blank, with(canaryIs(Yes)), Legacy, KubeletCanary, true},
		{"2: canary in legacy, nft unread", "", with(unread), with(canaryIs(Yes)), Legacy, KubeletCanary, false},
		{"2: canary in both", "", with(canaryIs(Yes)), with(canaryIs(Yes)), NFT, KubeletCanary, true},
		{"2: canary in legacy, more rules in nft", "", with(between(9, 9)), with(canaryIs(Yes)), Legacy, KubeletCanary, true},

		{"3: one rule in nft", "", with(between(1, 1)), blank, NFT, RuleCount, true},
		{"3: one rule in legacy", "", blank, with(between(1, 1)), Legacy, RuleCount, true},
		{"3: more in nft", "", with(between(5, 5)), with(between(4, 4)), NFT, RuleCount, true},
		{"3: more in legacy", "", with(between(4, 4)), with(between(5, 5)), Legacy, RuleCount, true},
		{"3: as many", "", with(between(4, 4)), with(between(4, 4)), NFT, RuleCount, true},
		{"3: bounds decide for nft", "", with(between(1, Unbounded)), blank, NFT, RuleCount, true},
		{"3: bounds decide for legacy", "", blank, with(between(1, 900)), Legacy, RuleCount, true},
		{"3: rules in nft, legacy unread", "", with(between(50, 50)), with(unread), NFT, RuleCount, false},
		{"3: rules in legacy, nft unread", "", with(unread), with(between(50, 50)), Legacy, RuleCount, false},
		{"3: rules in nft, its chains unread, none of legacy", "", with(unread, between(5, 5)), blank, NFT, RuleCount, true},

		{"4: no nf_tables", "", with(supportedIs(No)), blank, Legacy, OnlySupported, false},
		{"4: no nf_tables, legacy a module", "", with(supportedIs(No)), with(supportedIs(Unknown)), Legacy, OnlySupported, false},
		{"4: no x_tables", "", blank, with(supportedIs(No)), NFT, OnlySupported, false},
		{"4: neither", "", with(supportedIs(No)), with(supportedIs(No)), NFT, Default, false},
		{"4: before what is installed", "", with(supportedIs(No), installedIs(Yes)), with(installedIs(No)), Legacy, OnlySupported, false},

		{"5: only nft installed", "", with(installedIs(Yes)), with(installedIs(No)), NFT, OnlyInstalled, false},
		{"5: only legacy installed", "", with(installedIs(No)), with(installedIs(Yes)), Legacy, OnlyInstalled, false},
		{"5: neither installed", "", with(installedIs(No)), with(installedIs(No)), NFT, Default, false},

		{"4, last: nf_tables without nft_compat", "", with(compatIs(No)), blank, Legacy, OnlySupported, false},
		{"4, last: legacy a module", "", with(compatIs(No)), with(supportedIs(Unknown)), Legacy, OnlySupported, false},
		{"4, last: no x_tables", "", with(compatIs(No)), with(supportedIs(No)), NFT, OnlySupported, false},
		{"4, last: neither", "", with(compatIs(No), supportedIs(No)), with(supportedIs(No)), NFT, Default, false},
		{"4, last: after what is installed", "", with(compatIs(No), installedIs(Yes)), with(installedIs(No)), NFT, OnlyInstalled, false},
		{"4, last: not against a rule", "", with(compatIs(No), between(1, 1)), blank, NFT, RuleCount, true},

		{"6: nothing", "", blank, blank, NFT, Default, false},
		{"6: nothing read", "", with(unread), with(unread), NFT, Default, false},
		{"6: nothing in nft, legacy unread", "", blank, with(unread), NFT, Default, false},
	} {
		mode, reason, conclusive := decide(facts{test.override, test.nft, test.legacy})
		if mode != test.mode || reason != test.reason || conclusive != test.conclusive {
			t.Errorf("%s: got %v %v %v, want %v %v %v",
				test.doc, mode, reason, conclusive, test.mode, test.reason, test.conclusive)
		}
	}
}

// complete lists every state that a backend can be in, given what is known of it. Three rules stand for any number.
func complete(s side) []side {
	answers := func(a Answer) []Answer {
		if a == Yes || a == No {
			return []Answer{a}
		}
		return []Answer{Yes, No}
	}
	var all []side
	for _, h := range answers(s.hint) {
		for _, c := range answers(s.canary) {
			for n := s.rules.Min; n <= min(s.rules.Max, 3); n++ {
				all = append(all, side{hint: h, canary: c, rules: exactly(n)})
			}
		}
	}
	return all
}

// plainly is rules 1 to 3 for a host of which everything is known, written as the design states them. "" is: nothing
// was found.
func plainly(nft, legacy side) Mode {
	for _, found := range [][2]bool{
		{nft.hint == Yes, legacy.hint == Yes},
		{nft.canary == Yes, legacy.canary == Yes},
		{nft.rules.Min >= legacy.rules.Min && nft.rules.Min > 0, legacy.rules.Min > nft.rules.Min},
	} {
		if found[0] {
			return NFT
		}
		if found[1] {
			return Legacy
		}
	}
	return ""
}

// An answer is conclusive exactly if every host that what is known could describe has that answer.
func TestConclusiveIsWhatNothingCouldOverturn(t *testing.T) {
	var sides []side
	for _, h := range []Answer{NotAsked, Unknown, No, Yes} {
		for _, c := range []Answer{NotAsked, Unknown, No, Yes} {
			for _, n := range []Count{{0, 0}, {1, 1}, {2, 2}, {0, 2}, {1, 2}, {0, Unbounded}, {1, Unbounded}, {2, Unbounded}} {
				sides = append(sides, side{hint: h, canary: c, rules: n})
			}
		}
	}
	conclusives := 0
	for _, nft := range sides {
		for _, legacy := range sides {
			var modes []Mode
			for _, n := range complete(nft) {
				for _, l := range complete(legacy) {
					if m := plainly(n, l); !slices.Contains(modes, m) {
						modes = append(modes, m)
					}
				}
			}
			want := len(modes) == 1 && modes[0] != ""
			mode, _, conclusive := decide(facts{nft: nft, legacy: legacy})
			if conclusive != want || want && mode != modes[0] {
				t.Fatalf("nft %+v, legacy %+v: got %v, conclusive %v; possible are %v", nft, legacy, mode, conclusive, modes)
			}
			if conclusive {
				conclusives++
			}
		}
	}
	if conclusives == 0 || conclusives == len(sides)*len(sides) {
		t.Fatalf("%d of %d cases conclusive: the test does not tell them apart", conclusives, len(sides)*len(sides))
	}
}

func TestConflicts(t *testing.T) {
	for _, test := range []struct {
		doc         string
		nft, legacy side
		want        []Conflict
	}{
		{"one mode", with(hintIs(Yes), canaryIs(Yes), between(9, 9)), blank, nil},
		{"hint in both", with(hintIs(Yes)), with(hintIs(Yes)), []Conflict{HintInBoth}},
		{"mode changed without a restart", with(hintIs(Yes), canaryIs(Yes)), with(hintIs(Yes), canaryIs(Yes)), []Conflict{HintInBoth, CanaryInBoth}},
		{"stale canary in legacy", with(hintIs(Yes)), with(canaryIs(Yes)), []Conflict{StrayCanary}},
		{"stale canary in nft", with(canaryIs(Yes)), with(hintIs(Yes)), []Conflict{StrayCanary}},
		{"canary in both, no hint", with(canaryIs(Yes)), with(canaryIs(Yes)), []Conflict{CanaryInBoth}},
		{"rules in both", with(between(1, 1)), with(between(7, 7)), []Conflict{RulesInBoth}},
		{"rules in one", with(between(1, 1)), with(between(0, Unbounded)), nil},
		{"not asked", with(hintIs(Yes)), with(hintIs(NotAsked), canaryIs(Yes)), nil},
	} {
		if got := conflicts(facts{nft: test.nft, legacy: test.legacy}); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.doc, got, test.want)
		}
	}
}
