// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A table of nft in which somebody has chains or rules of his own is unknown, unless one rule has a match or target.
func TestForeign(t *testing.T) {
	for _, test := range []struct{ doc, script, chain string }{
		{"lower-case", "add chain ip filter input { type filter hook input priority 0; }; " +
			"add rule ip filter input accept",
			"input"},
		{"priority", "add chain ip filter INPUT { type filter hook input priority 10; }; " +
			"add rule ip filter INPUT accept",
			"INPUT"},
		{"hook", "add chain ip filter INPUT { type filter hook output priority 0; }; add rule ip filter INPUT accept",
			"INPUT"},
		{"type", "add chain ip filter OUTPUT { type route hook output priority 0; }; add rule ip filter OUTPUT accept",
			"OUTPUT"},
		{"a rule", "add chain ip filter MINE; add rule ip filter MINE ct state new accept", "MINE"},
		{"a chain beside iptables' own", "add chain ip filter INPUT { type filter hook input priority 0; }; " +
			"add rule ip filter INPUT accept; add chain ip filter late { type filter hook input priority 1; }", "late"},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			nftScript(t, "add table ip filter; "+test.script)
			for _, q := range []Query{{}, {Everything: true}} {
				r := q.Ask()
				a := r.NFT[IPv4]
				if r.Reason != Default || a.Rules != Unknown ||
					!slices.Equal(a.Foreign, []Chain{{"filter", test.chain}}) ||
					!strings.Contains(r.Uncertainty(), `"`+test.chain+`"`) {
					t.Errorf("%+v: got %+v, %+v, %q", q, r.Decision, a, r.Uncertainty())
				}
			}
			addRules(t, Legacy, IPv4, 1)
			if r := (Query{}).Ask(); r.Mode != Legacy || r.Reason != RuleCount || r.Conclusive {
				t.Errorf("a rule in legacy: got %+v", r.Decision)
			}
			if test.doc != "priority" && test.doc != "hook" { // there, iptables-nft can add nothing
				addRules(t, NFT, IPv4, 1)
				if r := (Query{}).Ask(); r.Mode != NFT || r.NFT[IPv4].Rules != Yes || r.Conclusive {
					t.Errorf("a rule of iptables-nft: got %+v", r.Decision)
				}
			}
		})
	}
}

// What is beyond the bound of a dump is unknown; what was read counts.
func TestBounds(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip other; add chain ip other c"+strings.Repeat("; add rule ip other c accept", 300))
	addRules(t, NFT, IPv4, 1)
	addRules(t, Legacy, IPv4, 2)
	for _, test := range []struct {
		most int
		want string
	}{{200, "legacy rule-count unknown"}, {1000, "legacy rule-count yes"}} {
		p := newProber(Query{})
		p.nft.most = test.most
		r := p.ask()
		p.close()
		if got := fmt.Sprint(r.Mode, " ", r.Reason, " ", r.NFT[IPv4].Rules); got != test.want || r.Conclusive ||
			errors.Is(r.Err(), errTooMuch) != (test.most == 200) || r.Momentary() {
			t.Errorf("%d: got %s, %v", test.most, got, r.Err())
		}
	}
	nftScript(t, "add table ip a; add table ip b; add table ip docker-bridges")
	p := newProber(Query{})
	defer p.close()
	p.nft.most = 2
	if r := p.ask(); r.NFT[IPv4].HostTable != Unknown || r.NFT[IPv4].HostChain != No || r.Conclusive {
		t.Errorf("tables: got %+v", r.NFT[IPv4])
	}
}

// Reading ends where nft has as many rules as legacy. A large rule in a later table does not end a dump unnoticed.
func TestEnough(t *testing.T) {
	host.Netns(t)
	large := "-A POSTROUTING" + strings.Repeat(" -m u32 --u32 0&0xFF=1", 6) + " -j ACCEPT\n" // some 12 KiB in a dump
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1000)+"COMMIT\n*nat\n"+
		strings.Repeat(large, 3)+"-A POSTROUTING -m comment --comment x\nCOMMIT\n", "iptables-nft-restore")
	for enough, want := range map[int]ruleDump{
		1:    {read: firstRules + 1},
		100:  {read: firstRules + 100},
		2000: {read: 1004, all: true},
	} {
		var p nftProbe
		p.most = mostObjects
		d, err := p.rules(IPv4, enough)
		d.tables = want.tables
		if d != want || err != nil {
			t.Errorf("%d: got %+v, %v", enough, d, err)
		}
		// What was left to read does not block the next question.
		if has, err := p.chain(IPv4, mangle, HintChain); has != No || err != nil {
			t.Errorf("then: got %v, %v", has, err)
		}
		p.conn.Close()
	}
	host.Netns(t)
	host.Feed(t, "*nat\n"+large+"COMMIT\n", "iptables-nft-restore")
	if r := (Query{}).Ask(); r.NFT[IPv4].Rules != Yes || !r.Conclusive {
		t.Errorf("a large rule alone: got %+v", r.NFT[IPv4])
	}
}

// Whether nf_tables is there, and whether it makes sense to ask more.
func TestNote(t *testing.T) {
	for _, test := range []struct {
		errs  []error
		works Answer
		fatal error
	}{
		{[]error{nil}, Yes, nil},
		{[]error{unix.ENOENT}, Yes, nil},
		{[]error{errNoNFTables}, No, errNoNFTables},
		{[]error{unix.EPERM}, Unknown, unix.EPERM},
		{[]error{unix.EAGAIN}, Unknown, unix.EAGAIN},
		{[]error{unix.ENOBUFS}, Unknown, nil},
		{[]error{unix.ENOBUFS, unix.ENOENT}, Yes, nil},
		{[]error{unix.ENOENT, errTooMuch}, Yes, nil},
	} {
		var p nftProbe
		for _, err := range test.errs {
			p.note(err)
		}
		if p.works != test.works || p.fatal != test.fatal {
			t.Errorf("%v: got %v, %v", test.errs, p.works, p.fatal)
		}
	}
}
