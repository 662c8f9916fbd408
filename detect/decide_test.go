// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
	"testing"
)

// empty is a backend of which everything is known: it has nothing.
var empty = backend{ipv4: Yes, ipv6: Yes, hint: No, canary: No, hostChain: No, hostTable: No}

func with(change ...func(*backend)) backend {
	b := empty
	for _, c := range change {
		c(&b)
	}
	return b
}

func hintIs(a Answer) func(*backend)   { return func(b *backend) { b.hint = a } }
func existsIs(a Answer) func(*backend) { return func(b *backend) { b.exists = a } }
func canaryIs(a Answer) func(*backend) { return func(b *backend) { b.canary = a } }

// chainIs and tableIs say whether a program of the host has a chain of iptables, or a table of nftables.
func chainIs(a Answer) func(*backend) { return func(b *backend) { b.hostChain = a } }
func tableIs(a Answer) func(*backend) { return func(b *backend) { b.hostTable = a } }

func worksIs(v4, v6 Answer) func(*backend) {
	return func(b *backend) { b.ipv4, b.ipv6 = v4, v6 }
}
func between(min, max int) func(*backend) {
	return func(b *backend) { b.rules, b.likely = Count{min, max}, min }
}

// about is an estimate beside a lower bound.
func about(min, n int) func(*backend) {
	return func(b *backend) { b.rules, b.likely = Count{min, Unbounded}, n }
}

func guess(m Mode) Memory   { return Memory{Mode: m} }
func certain(m Mode) Memory { return Memory{Mode: m, Conclusive: true} }

// unread is a backend that nothing could be read of.
func unread(b *backend) {
	*b = backend{
		ipv4: Unknown, ipv6: Unknown, hint: Unknown, canary: Unknown, hostChain: Unknown, hostTable: Unknown,
		rules: Count{0, Unbounded},
	}
}

func TestDecide(t *testing.T) {
	none := Query{}
	for _, test := range []struct {
		doc         string
		known       Query // what the query knows
		nft, legacy backend
		want        row
	}{
		{"set, against all evidence", Query{Override: Legacy}, with(hintIs(Yes)), empty,
			row{Override, Legacy, true, false}},
		{"set, nothing read", Query{Override: NFT}, with(unread), with(unread), row{Override, NFT, true, false}},
		{"set, another remembered", Query{Override: NFT, Remembered: guess(Legacy), Installed: Legacy}, empty, empty,
			row{Override, NFT, true, false}},

		{"hint in nft", none, with(hintIs(Yes)), empty, row{KubeletHint, NFT, true, true}},
		{"hint in nft, legacy unread", none, with(hintIs(Yes)), with(unread), row{KubeletHint, NFT, true, true}},
		{"hint in legacy", none, empty, with(hintIs(Yes)), row{KubeletHint, Legacy, true, true}},
		{"hint in legacy, nft unread", none, with(unread), with(hintIs(Yes)), row{KubeletHint, Legacy, true, false}},
		{"hint in legacy, more rules in nft", none, with(between(9, 9)), with(hintIs(Yes)),
			row{KubeletHint, Legacy, true, true}},
		{"hint in legacy, stale canary in nft", none, with(canaryIs(Yes)), with(hintIs(Yes)),
			row{KubeletHint, Legacy, true, true}},
		{"hint in nft, stale canary in legacy", none, with(hintIs(Yes)), with(canaryIs(Yes)),
			row{KubeletHint, NFT, true, true}},
		{"hint in both", none, with(hintIs(Yes)), with(hintIs(Yes)), row{KubeletHint, NFT, true, true}},
		{"hint in legacy, nft remembered", Query{Remembered: guess(NFT)}, empty, with(hintIs(Yes)),
			row{KubeletHint, Legacy, true, true}},

		{"canary in nft", none, with(canaryIs(Yes)), empty, row{KubeletCanary, NFT, true, true}},
		{"canary in nft, legacy unread", none, with(canaryIs(Yes)), with(unread), row{KubeletCanary, NFT, true, false}},
		{"canary in legacy", none, empty, with(canaryIs(Yes)), row{KubeletCanary, Legacy, true, true}},
		{"canary in legacy, nft unread", none, with(unread), with(canaryIs(Yes)),
			row{KubeletCanary, Legacy, true, false}},
		{"canary in both", none, with(canaryIs(Yes)), with(canaryIs(Yes)), row{KubeletCanary, NFT, true, true}},
		{"canary in legacy, more rules in nft", none, with(between(9, 9)), with(canaryIs(Yes)),
			row{KubeletCanary, Legacy, true, true}},
		{"canary in nft, legacy remembered", Query{Remembered: guess(Legacy)}, with(canaryIs(Yes)), empty,
			row{KubeletCanary, NFT, true, true}},

		{"remembered", Query{Remembered: guess(Legacy)}, empty, empty, row{Remembered, Legacy, true, false}},
		{"remembered, rules in the other", Query{Remembered: guess(Legacy)}, with(between(9, 9)), empty,
			row{Remembered, Legacy, true, false}},
		{"remembered, only the other works", Query{Remembered: guess(NFT)}, with(worksIs(No, No)), empty,
			row{Remembered, NFT, true, false}},
		{"remembered, only the other installed", Query{Remembered: guess(NFT), Installed: Legacy}, empty, empty,
			row{Remembered, NFT, true, false}},
		{"remembered, nothing read", Query{Remembered: guess(Legacy)}, with(unread), with(unread),
			row{Remembered, Legacy, true, false}},

		{"remembered, no table of it", Query{Remembered: guess(Legacy)}, empty, with(existsIs(No)),
			row{Default, NFT, true, false}},
		{"remembered, no table of it, rules in the other", Query{Remembered: guess(Legacy)}, with(between(9, 9)),
			with(existsIs(No)), row{RuleCount, NFT, true, true}},
		{"remembered, perhaps a table of it", Query{Remembered: guess(Legacy)}, empty, with(existsIs(Unknown)),
			row{Remembered, Legacy, true, false}},
		{"remembered, a table of it", Query{Remembered: guess(NFT)}, with(existsIs(Yes)), with(between(9, 9)),
			row{Remembered, NFT, true, false}},
		{"remembered for certain, no table of it", Query{Remembered: certain(Legacy)}, with(between(9, 9)),
			with(existsIs(No)), row{Remembered, Legacy, true, true}},
		{"remembered for certain, nft unread", Query{Remembered: certain(Legacy)}, with(unread), empty,
			row{Remembered, Legacy, true, false}},
		{"remembered for certain, legacy unread", Query{Remembered: certain(NFT)}, empty, with(unread),
			row{Remembered, NFT, true, false}},
		{"remembered for certain, its own backend unread", Query{Remembered: certain(NFT)}, with(unread), empty,
			row{Remembered, NFT, true, true}},

		{"remembered elsewhere", Query{Home: certain(Legacy)}, empty, empty, row{Remembered, Legacy, true, false}},
		{"selected elsewhere", Query{Home: Memory{Mode: Legacy, Reason: Override}}, empty, empty,
			row{Remembered, Legacy, true, false}},
		{"a guess elsewhere", Query{Home: guess(Legacy)}, empty, empty, row{Default, NFT, true, false}},
		{"remembered elsewhere, no table of it", Query{Home: certain(Legacy)}, empty, with(existsIs(No)),
			row{Remembered, Legacy, true, false}},
		{"remembered elsewhere, rules here", Query{Home: certain(Legacy)}, with(between(1, 1)), empty,
			row{RuleCount, NFT, true, true}},
		{"remembered elsewhere, a canary here", Query{Home: certain(Legacy)}, with(canaryIs(Yes)), empty,
			row{KubeletCanary, NFT, true, true}},
		{"remembered elsewhere, a guess here", Query{Home: certain(Legacy), Remembered: guess(NFT)}, empty, empty,
			row{Remembered, NFT, true, false}},
		{"remembered elsewhere, nft alone works", Query{Home: certain(Legacy)}, empty, with(worksIs(No, No)),
			row{Remembered, Legacy, true, false}},
		{"remembered elsewhere, nft alone installed", Query{Home: certain(Legacy), Installed: NFT}, empty, empty,
			row{Remembered, Legacy, true, false}},

		{"one rule in nft", none, with(between(1, 1)), empty, row{RuleCount, NFT, true, true}},
		{"one rule in legacy", none, empty, with(between(1, 1)), row{RuleCount, Legacy, true, true}},
		{"more in nft", none, with(between(5, 5)), with(between(4, 4)), row{RuleCount, NFT, true, true}},
		{"more in legacy", none, with(between(4, 4)), with(between(5, 5)), row{RuleCount, Legacy, true, true}},
		{"as many", none, with(between(4, 4)), with(between(4, 4)), row{RuleCount, NFT, true, true}},
		{"bounds decide for nft", none, with(between(1, Unbounded)), empty, row{RuleCount, NFT, true, true}},
		{"bounds decide for legacy", none, empty, with(between(1, 900)), row{RuleCount, Legacy, true, true}},
		{"rules in nft, legacy unread", none, with(between(50, 50)), with(unread), row{RuleCount, NFT, true, false}},
		{"rules in legacy, nft unread", none, with(unread), with(between(50, 50)), row{RuleCount, Legacy, true, false}},
		{"rules in nft, its chains unread, none of legacy", none, with(unread, between(5, 5)), empty,
			row{RuleCount, NFT, true, true}},
		{"foreign rules in nft, fewer in legacy", none, with(between(0, 3)), with(between(2, 2)),
			row{RuleCount, Legacy, true, false}},
		{"foreign rules in nft, more in legacy", none, with(between(0, 3)), with(between(4, 4)),
			row{RuleCount, Legacy, true, true}},
		{"foreign rules in nft alone", none, with(between(0, 3)), empty, row{Default, NFT, true, false}},
		{"an estimate in nft, none in legacy", none, with(about(0, 50)), empty, row{RuleCount, NFT, true, false}},
		{"an estimate in nft, fewer in legacy", none, with(about(300, 5000)), with(between(1500, 1500)),
			row{RuleCount, NFT, true, false}},
		{"an estimate in nft, more in legacy", none, with(about(300, 1400)), with(between(1500, 1500)),
			row{RuleCount, Legacy, true, false}},
		{"an estimate in nft, its bound is enough", none, with(about(2, 3)), with(between(2, 2)),
			row{RuleCount, NFT, true, true}},
		{"an estimate in legacy", none, with(between(20, 20)), with(about(1, 21)), row{RuleCount, Legacy, true, false}},
		{"not by what works", none, with(worksIs(No, No), between(1, 1)), empty, row{RuleCount, NFT, true, true}},

		{"no nf_tables", none, with(worksIs(No, No)), empty, row{OnlySupported, Legacy, true, false}},
		{"no nf_tables, legacy a module", none, with(worksIs(No, No)), with(worksIs(Unknown, Unknown)),
			row{OnlySupported, Legacy, true, false}},
		{"no x_tables", none, empty, with(worksIs(No, No)), row{OnlySupported, NFT, true, false}},
		{"neither", none, with(worksIs(No, No)), with(worksIs(No, No)), row{Default, NFT, true, false}},
		{"before what is installed", Query{Installed: NFT}, with(worksIs(No, No)), empty,
			row{OnlySupported, Legacy, true, false}},
		{"nft without IPv4", none, with(worksIs(No, Yes)), empty, row{OnlySupported, Legacy, true, false}},
		{"nft without IPv6", none, with(worksIs(Yes, No)), empty, row{OnlySupported, Legacy, true, false}},
		{"nft without IPv6, legacy's not loaded", none, with(worksIs(Yes, No)), with(worksIs(Yes, Unknown)),
			row{Default, NFT, true, false}},
		{"nft without IPv6, nor has legacy", none, with(worksIs(Yes, No)), with(worksIs(Yes, No)),
			row{Default, NFT, true, false}},
		{"nft without IPv6, legacy without IPv4", none, with(worksIs(Yes, No)), with(worksIs(No, Yes)),
			row{OnlySupported, NFT, true, false}},
		{"legacy without IPv6", none, empty, with(worksIs(Yes, No)), row{Default, NFT, true, false}},
		{"legacy without IPv6, only legacy installed", Query{Installed: Legacy}, empty, with(worksIs(Yes, No)),
			row{OnlyInstalled, Legacy, true, false}},
		{"IPv6 alone, in legacy", none, with(worksIs(No, No)), with(worksIs(No, Yes)),
			row{OnlySupported, Legacy, true, false}},
		{"IPv6 alone, in nft", none, with(worksIs(No, Yes)), with(worksIs(No, No)),
			row{OnlySupported, NFT, true, false}},

		{"a program in nft", none, with(chainIs(Yes), between(9, 9)), with(between(31, 31)),
			row{HostProgram, NFT, true, true}},
		{"a program in legacy", none, with(between(31, 31)), with(chainIs(Yes), between(9, 9)),
			row{HostProgram, Legacy, true, true}},
		{"a program in nft, legacy unread", none, with(chainIs(Yes)), with(unread), row{HostProgram, NFT, true, false}},
		{"a program in legacy, nft unread", none, with(unread), with(chainIs(Yes)),
			row{HostProgram, Legacy, true, false}},
		{"programs in both", none, with(chainIs(Yes), between(9, 9)), with(chainIs(Yes), between(31, 31)),
			row{RuleCount, Legacy, true, false}},
		{"a program against kubelet", none, with(chainIs(Yes)), with(canaryIs(Yes)),
			row{KubeletCanary, Legacy, true, true}},
		{"a program against a memory", Query{Remembered: certain(Legacy)}, with(chainIs(Yes)), empty,
			row{Remembered, Legacy, true, true}},
		{"a table, legacy without rules", none, with(tableIs(Yes)), empty, row{HostProgram, NFT, true, true}},
		{"a table, rules in nft alone", none, with(tableIs(Yes), between(2, 2)), empty,
			row{HostProgram, NFT, true, true}},
		{"a table, a rule in legacy", none, with(tableIs(Yes)), with(between(1, 1)),
			row{HostProgram, NFT, true, false}},
		{"a table, more rules in nft than in legacy", none, with(tableIs(Yes), between(2, 2)), with(between(1, 1)),
			row{RuleCount, NFT, true, true}},
		{"a table, and a program in legacy", none, with(tableIs(Yes)), with(chainIs(Yes), between(1, 1)),
			row{RuleCount, Legacy, true, false}},
		{"rules in nft, legacy not read for programs", none, with(between(9, 9)),
			with(chainIs(Unknown), between(3, 3)), row{RuleCount, NFT, true, false}},
		{"rules in legacy, legacy not read for programs", none, with(between(3, 3)),
			with(chainIs(Unknown), between(9, 9)), row{RuleCount, Legacy, true, true}},

		{"only nft installed", Query{Installed: NFT}, empty, empty, row{OnlyInstalled, NFT, true, false}},
		{"only legacy installed", Query{Installed: Legacy}, empty, empty, row{OnlyInstalled, Legacy, true, false}},

		{"nothing", none, empty, empty, row{Default, NFT, true, false}},
		{"nothing read", none, with(unread), with(unread), row{Default, NFT, true, false}},
		{"nothing in nft, legacy unread", none, empty, with(unread), row{Default, NFT, true, false}},
	} {
		if got := test.known.decide(test.nft, test.legacy); got != test.want {
			t.Errorf("%s: got %v, want %v", test.doc, got, test.want)
		}
	}
}

func TestReasons(t *testing.T) {
	var want []Reason
	for _, r := range decisionTable(Query{}, backend{}, backend{}) {
		if !slices.Contains(want, r.reason) { // what is remembered of another namespace ranks below
			want = append(want, r.reason)
		}
	}
	if got := Reasons(); !slices.Equal(got, want) {
		t.Errorf("Reasons, in decide.go, returns %v, and the decision table has %v", got, want)
	}
}

// A dry run counts for the family it is about, and only if something was refused.
func TestWorks(t *testing.T) {
	features := func(has ...Answer) (all []Feature) {
		for _, a := range has {
			all = append(all, Feature{Has: a})
		}
		return all
	}
	for _, test := range []struct {
		q    Query
		e    Evidence
		want Answer
	}{
		{Query{}, Evidence{Supported: Yes}, Yes},
		{Query{}, Evidence{Supported: No}, No},
		{Query{}, Evidence{Supported: Unknown}, Unknown},
		{Query{}, Evidence{Supported: Yes, Features: features(Yes, NotAsked, Yes)}, Yes},
		{Query{}, Evidence{Supported: Yes, Features: features(Yes, Unknown)}, Yes},
		{Query{}, Evidence{Supported: Yes, Features: features(Yes, No, Yes)}, No},
		{Query{Installed: NFT}, Evidence{Supported: Yes, Features: features(Yes, No, Yes)}, Yes},
		{Query{Installed: NFT}, Evidence{Supported: No}, No},
	} {
		if got := test.q.works(test.e); got != test.want {
			t.Errorf("%+v, %+v: got %v, want %v", test.q, test.e, got, test.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	for _, test := range []struct {
		doc         string
		nft, legacy backend
		want        []Conflict
	}{
		{"one mode", with(hintIs(Yes), canaryIs(Yes), between(9, 9)), empty, nil},
		{"hint in both", with(hintIs(Yes)), with(hintIs(Yes)), []Conflict{HintInBoth}},
		{"mode changed without a restart", with(hintIs(Yes), canaryIs(Yes)), with(hintIs(Yes), canaryIs(Yes)),
			[]Conflict{HintInBoth, CanaryInBoth}},
		{"stale canary in legacy", with(hintIs(Yes)), with(canaryIs(Yes)), []Conflict{StrayCanary}},
		{"stale canary in nft", with(canaryIs(Yes)), with(hintIs(Yes)), []Conflict{StrayCanary}},
		{"canary in both, hint in one", with(hintIs(Yes), canaryIs(Yes)), with(canaryIs(Yes)),
			[]Conflict{CanaryInBoth}},
		{"canary in both, no hint", with(canaryIs(Yes)), with(canaryIs(Yes)), []Conflict{CanaryInBoth}},
		{"rules in both", with(between(1, 1)), with(between(7, 7)), []Conflict{RulesInBoth}},
		{"rules in one", with(between(1, 1)), with(between(0, Unbounded)), nil},
		{"programs in both", with(chainIs(Yes)), with(chainIs(Yes)), []Conflict{HostProgramsInBoth}},
		{"a table in nft, a chain in legacy", with(tableIs(Yes)), with(chainIs(Yes)), []Conflict{HostProgramsInBoth}},
		{"a program in one, the other not asked", with(chainIs(Yes)), with(chainIs(NotAsked)), nil},
		{"not asked", with(hintIs(Yes)), with(hintIs(NotAsked), canaryIs(Yes)), nil},
	} {
		if got := conflicts(test.nft, test.legacy); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.doc, got, test.want)
		}
	}
}
