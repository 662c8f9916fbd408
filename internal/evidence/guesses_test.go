// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"testing"
)

// works is a backend that is known to be empty.
func works(v4, v6 Answer) (b Backend) {
	for _, f := range families {
		b[f] = About{Hint: No, Canary: No, HostChain: No, HostTable: No, Rules: No, Works: v4}
	}
	b[IPv6].Works = v6
	return b
}

func count(n int) Backend {
	b := works(Yes, Yes)
	b[IPv4].Rules, b[IPv4].Count = Yes, n
	return b
}

// The rows that are never certain.
func TestGuesses(t *testing.T) {
	yes := works(Yes, Yes)
	for _, test := range []struct {
		doc         string
		q           Query
		nft, legacy Backend
		mode        Mode
		reason      Reason
	}{
		{"set", Query{Override: Legacy, Remembered: Decision{Mode: NFT}}, yes, yes, Legacy, Override},
		{"set to nothing that exists", Query{Override: "other"}, yes, yes, NFT, Default},
		{"more in nft", Query{}, count(3), count(2), NFT, RuleCount},
		{"more in legacy", Query{}, count(2), count(3), Legacy, RuleCount},
		{"as many", Query{}, count(2), count(2), NFT, RuleCount},
		{"no nft", Query{}, works(No, No), yes, Legacy, OnlySupported},
		{"no nft, legacy not loaded", Query{}, works(No, No), works(Unknown, Unknown), Legacy, OnlySupported},
		{"no nft for IPv4", Query{}, works(No, Yes), yes, Legacy, OnlySupported},
		{"no nft for IPv6", Query{}, works(Yes, No), yes, Legacy, OnlySupported},
		{"no nft for IPv6, perhaps legacy", Query{}, works(Yes, No), works(Yes, Unknown), NFT, Default},
		{"no nft for IPv6, no legacy", Query{}, works(Yes, No), works(Yes, No), NFT, Default},
		{"no legacy", Query{}, yes, works(No, No), NFT, OnlySupported},
		{"no legacy, another installed", Query{Installed: Legacy}, yes, works(No, No), NFT, OnlySupported},
		{"no legacy for IPv6", Query{}, yes, works(Yes, No), NFT, Default},
		{"neither for IPv4", Query{}, works(No, Yes), works(No, No), NFT, OnlySupported},
		{"neither for IPv4, legacy for IPv6", Query{}, works(No, No), works(No, Yes), Legacy, OnlySupported},
		{"neither", Query{}, works(No, No), works(No, No), NFT, NeitherWorks},
		{"neither, legacy installed", Query{Installed: Legacy}, works(No, No), works(No, No), NFT, NeitherWorks},
		{"nothing known of nft", Query{}, works(Unknown, Unknown), yes, NFT, Default},
		{"nft installed", Query{Installed: NFT}, yes, yes, NFT, OnlyInstalled},
		{"legacy installed", Query{Installed: Legacy}, yes, yes, Legacy, OnlyInstalled},
		{"nothing", Query{}, yes, yes, NFT, Default},
		{"nothing known", Query{}, Backend{}, Backend{}, NFT, Default},
	} {
		got := test.q.Decide(test.nft, test.legacy)
		if got.Mode != test.mode || got.Reason != test.reason || got.Conclusive || got.Because == "" {
			t.Errorf("%s: got %+v", test.doc, got)
		}
		if !slices.Contains(Reasons(), got.Reason) {
			t.Errorf("%s is not among Reasons", got.Reason)
		}
	}
}

// Facts are known by family, and either family's count.
func TestTogether(t *testing.T) {
	for _, f := range families {
		for _, m := range Modes() {
			var b [2]Backend
			for i := range b {
				b[i] = works(Yes, Yes)
			}
			i := slices.Index(Modes(), m)
			b[i][f].HostChain = Yes
			if got := (Query{}).row(b[0], b[1]); got != (Decision{Mode: m, Reason: HostProgram, Conclusive: true}) {
				t.Errorf("a chain in %s, %s: got %+v", m, f, got)
			}
			b[i][f].HostChain, b[i][f].Rules = No, Yes
			if got := (Query{}).row(b[0], b[1]); got != (Decision{Mode: m, Reason: RuleCount, Conclusive: true}) {
				t.Errorf("a rule in %s, %s: got %+v", m, f, got)
			}
			b[1-i][f.other()].Rules = Unknown
			if got := (Query{}).row(b[0], b[1]); got != (Decision{Mode: m, Reason: RuleCount}) {
				t.Errorf("a rule in %s, %s, the other not read: got %+v", m, f, got)
			}
		}
	}
}

func (f Family) other() Family { return 1 - f }
