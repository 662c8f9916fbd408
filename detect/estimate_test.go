// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What was counted, as evidence: bounds and an estimate, for a table that somebody else uses and for one that is
// iptables'.
func TestTellNFT(t *testing.T) {
	ours := nftTable{exists: true}
	foreign := nftTable{exists: true, foreign: []Chain{{"filter", "own"}}}
	seen := func(min, max, seen int) tableRules {
		return tableRules{Count: Count{min, max}, seen: seen,
			xt: []chainRules{{chain: "own", rules: 1}, {chain: "INPUT", rules: 2}}}
	}
	for _, test := range []struct {
		doc             string
		rules           tableRules
		chains          nftTable
		listed, changed bool
		want            Count
		estimate        int
	}{
		{"exact", seen(9, 9, 9), ours, true, false, exactly(9), 0},
		{"more than", seen(9, Unbounded, 9), ours, true, false, Count{9, Unbounded}, 0},
		{
			"enough, of more", seen(9, Unbounded, 9), nftTable{exists: true, likely: 20}, true, false,
			Count{9, Unbounded}, 0,
		},
		{"interrupted", seen(9, Unbounded, 50), ours, true, true, Count{9, Unbounded}, 50},
		{"interrupted, the chains too", seen(9, Unbounded, 50), ours, false, true, Count{0, Unbounded}, 50},
		{"foreign", seen(9, 9, 9), foreign, true, false, Count{2, 9}, 0},
		{"foreign, interrupted", seen(9, Unbounded, 50), foreign, true, true, Count{2, Unbounded}, 0},
		{"foreign, the chains not all read", seen(9, Unbounded, 50), foreign, false, true, Count{0, Unbounded}, 0},
		{"gone since", seen(9, 9, 9), nftTable{}, true, false, exactly(9), 0},
		{"gone", tableRules{Count: Count{0, Unbounded}}, nftTable{}, true, false, exactly(0), 0},
	} {
		p := newProber(Query{})
		p.counted[0] = nftCount{listed: test.listed}
		if test.changed {
			p.evidence[0].fail(errInterrupted)
		}
		p.counted[0].rules[0], p.counted[0].chains[0] = test.rules, test.chains
		p.tellNFT(0)
		if e := p.evidence[0]; e.Rules != test.want || e.Estimate != test.estimate {
			t.Errorf("%s: got %v, about %d, want %v, about %d", test.doc, e.Rules, e.Estimate, test.want, test.estimate)
		}
	}
}

// A dump that fails takes nothing from what is known.
func TestFailedDumpLeavesCount(t *testing.T) {
	p := newProber(Query{})
	p.nft.fatal = unix.EPERM
	known := tableRules{Count: Count{3, Unbounded}, seen: 3}
	p.counted[0].rules[1] = known
	for _, table := range []string{"", "nat"} {
		p.readRules(0, table, limit{9, 9})
		if got := p.counted[0].rules[1]; got.Count != known.Count || got.seen != 3 || p.evidence[0].Err == nil {
			t.Errorf("%q: got %+v, %v", table, got, p.evidence[0].Err)
		}
	}
}

// Where the chains could not be listed, any table may have rules, and they are read for the estimate.
func TestMoreRules(t *testing.T) {
	n := nftCount{rules: uncounted()}
	if !n.more() {
		t.Error("nothing is known, and there is no more")
	}
	n.listed = true
	if n.more() {
		t.Error("no table exists, and there is more")
	}
	n.chains[1].exists = true
	if !n.more() {
		t.Error("a table was not read, and there is no more")
	}
	// Before those of tables that were looked at, the kernel lists all of other tables. Where they do not count, that
	// is in vain.
	n.rules[1].seen = firstRules
	n.chains[1].foreign = []Chain{{tableNames[1], "mine"}}
	if n.more() {
		t.Error("rules that may not be iptables' are worth reading")
	}
	n.chains[1].foreign = nil
	if !n.more() {
		t.Error("some rules of iptables were read, and there is no more")
	}
	n.rules[1].Max = 0
	if n.more() {
		t.Error("all was read, and there is more")
	}
}

// More questions are in vain once one backend has more rules than the other can have. Where legacy's rules are not all
// known, the answer is a guess, which needs twice as many: it is remembered only then.
func TestSettled(t *testing.T) {
	for _, test := range []struct {
		nft, legacy Count
		want        bool
	}{
		{Count{0, Unbounded}, Count{0, Unbounded}, false},
		{Count{2, Unbounded}, exactly(3), false},
		{Count{3, Unbounded}, exactly(3), true},
		{Count{0, 3}, Count{4, 9}, true},
		{Count{0, 4}, Count{4, 9}, false},
		{exactly(4), exactly(4), true},
		{Count{7, Unbounded}, Count{4, Unbounded}, false},
		{Count{8, Unbounded}, Count{4, Unbounded}, true},
		{Count{1, Unbounded}, Count{0, Unbounded}, false},
		{Count{2, Unbounded}, Count{0, Unbounded}, true},
	} {
		p := newProber(Query{})
		for i := range p.evidence {
			p.evidence[i].Rules = exactly(0)
		}
		p.evidence[0].Rules = test.nft
		p.evidence[2].Rules = test.legacy
		if got := p.settled(); got != test.want {
			t.Errorf("nft has %v, legacy %v: got %v", test.nft, test.legacy, got)
		}
	}
}

// addMatch adds a rule with a match of x_tables, as a program may do that is neither iptables-nft nor nft.
func addMatch(t *testing.T, table, chain string) {
	t.Helper()
	s := newNFTSocket(forCall)
	defer s.close()
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	batch := netlink.Request(unix.NFNL_MSG_BATCH_BEGIN, 0, 1, unix.AF_UNSPEC, nil)
	binary.BigEndian.PutUint16(batch[unix.SizeofNlMsghdr+2:], unix.NFNL_SUBSYS_NFTABLES)
	rule := ofTable(table).Text(unix.NFTA_RULE_CHAIN, chain).Nest(unix.NFTA_RULE_EXPRESSIONS,
		expression("match", netlink.Attributes{}.
			Text(unix.NFTA_MATCH_NAME, "comment").BE32(unix.NFTA_MATCH_REV, 0).Bytes(unix.NFTA_MATCH_INFO,
			make([]byte, sizeofComment))))
	batch = append(batch, netlink.Request(nftKind(unix.NFT_MSG_NEWRULE),
		unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ACK, 2, unix.NFPROTO_IPV4, rule)...)
	end := netlink.Request(unix.NFNL_MSG_BATCH_END, 0, 3, unix.AF_UNSPEC, nil)
	binary.BigEndian.PutUint16(end[unix.SizeofNlMsghdr+2:], unix.NFNL_SUBSYS_NFTABLES)
	err := s.exchange(append(batch, end...), func(datagram []byte) (bool, error) {
		m, _, err := netlink.Next(datagram)
		if errno := m.Errno(); err == nil && errno != 0 {
			return false, errno
		}
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A rule with a match in somebody else's base chain proves nothing. One in a chain of its own beside it does.
func TestMatchInForeignChain(t *testing.T) {
	for _, chain := range []string{"own { type filter hook output priority 0; }",
		"OUTPUT { type route hook output priority 0; }", "INPUT { type filter hook input priority 7; }"} {
		host.Netns(t)
		nftScript(t, "add table ip filter; add chain ip filter "+chain)
		name, _, _ := strings.Cut(chain, " ")
		addMatch(t, "filter", name)
		for _, q := range []Query{{}, {Everything: true}} {
			if r := q.Run(); r.Reason != Default || r.Conclusive || r.Of(NFT, IPv4).Rules != (Count{0, 1}) {
				t.Errorf("%s, %+v: got %v, conclusive %v, %v", chain, q, r, r.Conclusive, r.Of(NFT, IPv4).Rules)
			}
		}
		nftScript(t, "add chain ip filter MINE")
		addMatch(t, "filter", "MINE")
		for _, q := range []Query{{}, {Everything: true}} {
			if r := q.Run(); r.Mode != NFT || r.Reason != RuleCount || !r.Conclusive {
				t.Errorf("%s, %+v, one beside: got %v, conclusive %v", chain, q, r, r.Conclusive)
			}
		}
	}
}

// What is known of a table is read again, and counts once.
func TestCountAfterLook(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1000)+"COMMIT\n", "iptables-nft-restore")
	p := newProber(Query{})
	defer p.close()
	p.lookAtNFT(1)
	p.countNFT(500)
	if p.evidence[0].Rules.Min < 500 {
		t.Errorf("got %v", p.evidence[0].Rules)
	}
}

// A guess is remembered if one backend has twice as many rules, by the best estimates.
func TestMemorableIsFarApart(t *testing.T) {
	for _, test := range []struct {
		nft, legacy Evidence
		far         bool
	}{
		{Evidence{Rules: exactly(10)}, Evidence{Rules: exactly(5)}, true},
		{Evidence{Rules: exactly(9)}, Evidence{Rules: exactly(5)}, false},
		{Evidence{Rules: exactly(5)}, Evidence{Rules: exactly(10)}, true},
		{Evidence{Rules: exactly(5)}, Evidence{Rules: exactly(9)}, false},
		{Evidence{Rules: exactly(5)}, Evidence{Rules: exactly(5)}, false},
		{Evidence{Rules: exactly(1)}, Evidence{}, true},
		{Evidence{Rules: Count{1, Unbounded}, Estimate: 3000}, Evidence{Rules: exactly(1500)}, true},
		{Evidence{Rules: Count{1, Unbounded}, Estimate: 2999}, Evidence{Rules: exactly(1500)}, false},
	} {
		e := unasked()
		for i := range e {
			e[i].Rules = exactly(0)
		}
		e[0].Rules, e[0].Estimate, e[3].Rules = test.nft.Rules, test.nft.Estimate, test.legacy.Rules
		r := Query{}.result(e) // no chain was asked for, so it is a guess
		if r.Reason != RuleCount || (r.Memorable() == nil) != test.far {
			t.Errorf("%+v: got %v, %v", test, r, r.Memorable())
		}
		if want := fmt.Sprintf("about %d rules", test.nft.Estimate); test.nft.Estimate > 0 &&
			!strings.Contains(r.Because(), want) {
			t.Errorf("got %q, want %q in it", r.Because(), want)
		}
		r.Reason = Default
		if r.Memorable() != nil {
			t.Errorf("not by a count: got %v", r.Memorable())
		}
	}
}

// Where legacy's entries cannot be read, its headers bound the number of rules, and the guess goes by what they allow.
func TestEntriesRefused(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n:MINE - [0:0]\n"+strings.Repeat("-A MINE -j ACCEPT\n", 300)+"COMMIT\n",
		"iptables-legacy-restore", "-w")
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -j ACCEPT\n", 250)+"COMMIT\n", "iptables-nft-restore")
	refuseOption(t, soGetEntries, unix.EAGAIN)
	r := Host()
	if e := r.Of(Legacy, IPv4); r.Mode != Legacy || r.Conclusive || e.Rules.Min >= 250 || e.Rules.Max != 300 ||
		e.Estimate != 300 || !errors.Is(r.Memorable(), unix.EAGAIN) {
		t.Errorf("got %v, conclusive %v, %v, %+v", r, r.Conclusive, r.Memorable(), e)
	}
}

// Where a family of legacy cannot be read, the other is counted in full: that may be enough, and a guess needs it.
func TestListRefused(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n:MINE - [0:0]\n"+strings.Repeat("-A MINE -m comment --comment x -j ACCEPT\n",
		40)+"COMMIT\n", "ip6tables-legacy-restore", "-w")
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -m comment --comment x -j ACCEPT\n", 30)+"COMMIT\n",
		"iptables-nft-restore")
	p := newProber(Query{})
	defer p.close()
	p.legacy[0].names = "gone"
	if r := p.run(); r.Mode != Legacy || !r.Conclusive || r.Of(Legacy, IPv6).Rules != exactly(40) {
		t.Errorf("got %v, conclusive %v", r, r.Conclusive)
	}
}
