// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A host that uses nftables natively has no evidence for either backend, and it is said by what.
func TestNativeTables(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip mine; add table inet firewall; add table ip6 mine; add table bridge b; "+
		"add table inet filter; add table ip filter; add table ip6 nat")
	r := Query{Everything: true}.Run()
	if got, want := r.Of(NFT, IPv4).Native, []string{"ip mine", "inet firewall", "inet filter"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := r.Of(NFT, IPv6).Native, []string{"inet firewall", "ip6 mine", "inet filter"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
	const all = `("inet filter", "inet firewall", "ip mine", "ip6 mine")`
	if r.Reason != Default || !strings.Contains(r.Uncertainty(), all) ||
		!strings.Contains(r.Uncertainty(), "nothing speaks for legacy") {
		t.Errorf("got %v, %q", r, r.Uncertainty())
	}
	if r := Host(); r.Of(NFT, IPv4).Native != nil || strings.Contains(r.Uncertainty(), "mine") {
		t.Errorf("not asked for: got %q, %q", r.Of(NFT, IPv4).Native, r.Uncertainty())
	}
	host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
	r = Query{Everything: true}.Run()
	r.Conclusive = false
	if r.Mode != Legacy || strings.Contains(r.Uncertainty(), "nothing speaks") {
		t.Errorf("a rule in legacy: got %v, %q", r, r.Uncertainty())
	}
}

func TestAnswerString(t *testing.T) {
	for a, want := range map[Answer]string{NotAsked: "not-asked", Unknown: "unknown", No: "no", Yes: "yes",
		7: "Answer(7)", -1: "Answer(-1)"} {
		if got := a.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The questions do not grow with the host: chains are not listed where rules show who made them, and legacy's entries
// are not read where its headers decide.
func TestFlat(t *testing.T) {
	const many = 3 * firstRules
	k8s := func(match string) string {
		var s strings.Builder
		s.WriteString("*nat\n")
		for i := range many {
			s.WriteString(":KUBE-" + strings.Repeat("A", i%20) + string(rune('A'+i/20%26)) + string(rune('A'+i/520)) +
				" - [0:0]\n")
		}
		s.WriteString(strings.Repeat("-A PREROUTING "+match+"-j ACCEPT\n", many) + "COMMIT\n")
		return s.String()
	}
	for _, test := range []struct {
		doc       string
		nft       string // with or without a match
		family    Family
		legacy    int
		questions uint32 // the rules, once more with the whole buffer for IPv6, the chain
		listed    bool
		mode      Mode
	}{
		{"rules with a match", "-m comment --comment x ", IPv4, 0, 3, false, NFT},
		{"rules with a match in IPv6", "-m comment --comment x ", IPv6, 0, 5, false, NFT},
		{"a rule in legacy beside", "-m comment --comment x ", IPv4, 1, 3, false, NFT},
		{"hundreds in legacy beside", "-m comment --comment x ", IPv4, 500, 3, false, NFT},
		{"rules that do not show who made them", "", IPv4, 0, 0, true, NFT},
		{"more in legacy", "", IPv4, 1000 + 2*many, 0, false, Legacy},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			host.Feed(t, k8s(test.nft), program(NFT, test.family, "-restore"))
			host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -j ACCEPT\n", test.legacy)+"COMMIT\n",
				"iptables-legacy-restore", "-w")
			p := newProber(Query{})
			defer p.close()
			for i := range p.legacy {
				p.legacy[i].list()
			}
			p.compareRules()
			r := Query{}.result(p.evidence)
			if r.Mode != test.mode || p.counted[0].listed != test.listed || test.questions != 0 &&
				p.nft.seq > test.questions {
				t.Errorf("got %v, chains listed %v, %d questions", r, p.counted[0].listed, p.nft.seq)
			}
		})
	}
	t.Run("one rule in nft, many in legacy", func(t *testing.T) {
		host.Netns(t)
		host.Run(t, "iptables-nft", "-A", "INPUT", "-j", "ACCEPT")
		host.Feed(t, "*filter\n:MINE - [0:0]\n"+strings.Repeat("-A MINE -j ACCEPT -m comment --comment x\n",
			2000)+"COMMIT\n", "iptables-legacy-restore", "-w")
		if r := Host(); r.Mode != Legacy || !r.Conclusive ||
			r.Of(Legacy, IPv4).Rules.Min == r.Of(Legacy, IPv4).Rules.Max {
			t.Errorf("got %v, conclusive %v: were the entries read?", r, r.Conclusive)
		}
	})
}

// A table of IPv6 alone is as good.
func TestHostTableOfIPv6(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip6 docker-bridges")
	r := Host()
	if r.Mode != NFT || r.Reason != HostProgram || !r.Conclusive ||
		r.Because() != "Docker keeps its rules in nft: table ip6 docker-bridges" {
		t.Errorf("got %v, conclusive %v", r, r.Conclusive)
	}
}

// What was not read is named in the backend that could overturn the answer.
func TestUncertainPrograms(t *testing.T) {
	for _, test := range []struct {
		doc         string
		nft, legacy int
		why         string
	}{
		{"more in legacy", 1, 5, "nft's tables were not all read, and a program of the host may have rules there"},
		{"more in nft", 5, 1, "legacy's tables were not read, and a program of the host may have rules there"},
	} {
		evidence := unasked()
		for i, rules := range []int{test.nft, 0, test.legacy, 0} {
			e := &evidence[i]
			e.Hint = No
			e.Canary = No
			e.HostChain = Unknown
			e.HostTable = No
			e.Rules = exactly(rules)
		}
		if got := (Query{}).result(evidence).Uncertainty(); got != test.why {
			t.Errorf("%s: got %q", test.doc, got)
		}
	}
}
