// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// proberWithin makes a prober that reads no more than this.
func proberWithin(t *testing.T, most effort) *prober {
	t.Helper()
	p := newProber(Query{})
	p.most = most
	p.nft = newNFTSocket(most)
	for i, f := range families {
		p.legacy[i] = newLegacyProbe(f, most)
	}
	t.Cleanup(p.close)
	return p
}

// nativeRules has rules in a table that is not iptables', and one in table filter.
func nativeRules(n int) string {
	return `
table ip other {
	chain c {
` + strings.Repeat("\t\ttcp dport 22 accept\n", n) + `
	}
}
table ip filter {
	chain INPUT {
		type filter hook input priority 0;
		accept
	}
}
table ip nat {
	chain POSTROUTING { type nat hook postrouting priority 100; }
}
`
}

// Rules of a table that is not iptables' come before those that count, and somebody may have made any number of them.
// What is not read is unknown, so legacy's two rules are a guess; where all is read, they are certain.
func TestManyNativeRules(t *testing.T) {
	const native = 1000
	host.Netns(t)
	host.Feed(t, nativeRules(native), "nft", "-f", "-")
	for range 2 {
		host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
	}
	for _, test := range []struct {
		objects    int
		conclusive bool
	}{
		{native - 1, false},
		{2*native + 3*firstRules, true},
	} {
		most := forCall
		most.objects = test.objects
		p := proberWithin(t, most)
		r := p.run()
		e := r.Of(NFT, IPv4)
		if r.Mode != Legacy || r.Conclusive != test.conclusive || errors.Is(e.Err, errTooMuch) == test.conclusive {
			t.Errorf("%d objects: got %v, conclusive %v, %v", test.objects, r, r.Conclusive, e.Err)
		}
		if read := test.objects - p.nft.rulesLeft; read > test.objects || p.nft.rulesLeft < 0 {
			t.Errorf("%d objects: read %d", test.objects, read)
		}
	}
}

// Where somebody has made more than 256 tables, or more rules than docs/how-it-works.md says, a call does not read all.
func TestBoundsOfACall(t *testing.T) {
	tables := ""
	for i := range 257 {
		tables += fmt.Sprintf("add table ip t%d\n", i)
	}
	for what, script := range map[string]string{"rules": nativeRules(32<<10 + 1), "tables": tables} {
		t.Run(what, func(t *testing.T) {
			host.Netns(t)
			host.Feed(t, script, "nft", "-f", "-")
			for range 2 {
				host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
			}
			r := Query{}.Run()
			if e := r.Of(NFT, IPv4); r.Mode != Legacy || r.Conclusive || !errors.Is(e.Err, errTooMuch) {
				t.Errorf("got %v, conclusive %v, %v", r, r.Conclusive, e.Err)
			}
		})
	}
}

// Where not all of nft's rules are read, a guess goes by how often their chains are used: a partial count of one
// backend is not compared with a full one of the other.
func TestManyRulesAreEstimated(t *testing.T) {
	rules := func(n int) string {
		return "*filter\n:MINE - [0:0]\n-A INPUT -j MINE\n" + strings.Repeat("-A MINE -s 192.0.2.1 -j DROP\n",
			n) + "COMMIT\n"
	}
	host.Netns(t)
	host.Feed(t, rules(3000), "iptables-nft-restore")
	host.Feed(t, rules(1500), "iptables-legacy-restore", "-w")
	most := forCall
	most.objects = 1000
	r := proberWithin(t, most).run()
	if r.Mode != NFT || r.Conclusive || r.likely(NFT) != 3001 ||
		!strings.Contains(r.Uncertainty(), "too much to read") {
		t.Errorf("got %v, conclusive %v, likely %d, %q", r, r.Conclusive, r.likely(NFT), r.Uncertainty())
	}
}

// A user of the namespace who makes chains, or tables, does not make a query read them all.
func TestManyChainsAndTables(t *testing.T) {
	var script strings.Builder
	for i := range 300 {
		name := "x" + strings.Repeat("y", i%200) + string(rune('a'+i/200))
		script.WriteString("add table ip " + name + "\nadd chain ip filter " + name + "\n")
	}
	host.Netns(t)
	host.Feed(t, "add table ip filter\n"+script.String(), "nft", "-f", "-")
	p := proberWithin(t, effort{objects: 100, tables: 100})
	if _, err := p.nft.tables(IPv4); !errors.Is(err, errTooMuch) {
		t.Errorf("chains: got %v", err)
	}
	if names, err := p.nft.listTables(); !errors.Is(err, errTooMuch) || len(names) > 100 {
		t.Errorf("tables: got %d, %v", len(names), err)
	}
}

// Whether a table can have the chain of a program at all shows in its header, however large it is.
func TestLargeTableWithoutChains(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-N", "DOCKER-USER")
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1500)+"COMMIT\n",
		"iptables-legacy-restore", "-w")
	small := forCall
	small.table = 128 << 10
	r := proberWithin(t, small).run()
	if r.Mode != NFT || r.Reason != HostProgram || !r.Conclusive || r.Of(Legacy, IPv4).HostChain != No {
		t.Errorf("got %v, conclusive %v, %v", r, r.Conclusive, r.Of(Legacy, IPv4).HostChain)
	}
}

// Whether mangle can have kubelet's chains at all shows in its header. If it can, and is too large, it is not known:
// then no answer in favor of nft is certain, whereas one in favor of legacy is the same with and without.
func TestLargeMangle(t *testing.T) {
	const rule = "-A PREROUTING -s 192.0.2.1 -j ACCEPT\n"
	small := forCall
	small.table = 64 << 10
	for _, test := range []struct {
		doc        string
		legacy     string
		nft        int
		hint       Answer
		mode       Mode
		reason     Reason
		conclusive bool
	}{
		{
			doc: "no chain, any number of rules", legacy: strings.Repeat(rule, 2000), nft: 3000,
			hint: No, mode: NFT, reason: RuleCount, conclusive: true,
		},
		{
			doc: "a chain behind few rules", legacy: ":" + HintChain + " - [0:0]\n" + strings.Repeat(rule,
				100), nft: 3000,
			hint: Yes, mode: Legacy, reason: KubeletHint, conclusive: true,
		},
		{
			doc: "a chain behind many rules", legacy: ":" + HintChain + " - [0:0]\n" + strings.Repeat(rule,
				2000), nft: 3000,
			hint: Unknown, mode: NFT, reason: RuleCount, conclusive: false,
		},
		{
			doc: "a chain behind many rules, and few in nft", legacy: ":" + HintChain + " - " +
				"[0:0]\n" + strings.Repeat(rule, 2000), nft: 3,
			hint: Unknown, mode: Legacy, reason: RuleCount, conclusive: true,
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			if hostAlignment() != 8 {
				t.Skip("a header says nothing of chains on 386: see inUserChains")
			}
			host.Netns(t)
			host.Feed(t, "*mangle\n"+test.legacy+"COMMIT\n", "iptables-legacy-restore", "-w")
			host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -m comment --comment x -j ACCEPT\n",
				test.nft)+"COMMIT\n", "iptables-nft-restore")
			r := proberWithin(t, small).run()
			e := r.Of(Legacy, IPv4)
			if r.Mode != test.mode || r.Reason != test.reason || r.Conclusive != test.conclusive ||
				e.Hint != test.hint {
				t.Errorf("got %v, conclusive %v, hint %v, %v", r, r.Conclusive, e.Hint, e.Err)
			}
			if unknown := errors.Is(e.Err, errTooMuch); unknown != (test.hint == Unknown) {
				t.Errorf("got %v", e.Err)
			}
		})
	}
}

// What a wrapped call allocates does not depend on what is in mangle.
func TestLargeMangleTakesNoMemory(t *testing.T) {
	host.Netns(t)
	rules := "*mangle\n:MINE - [0:0]\n" + strings.Repeat("-A PREROUTING -s 192.0.2.1 -j ACCEPT\n", 40_000) + "COMMIT\n"
	host.Feed(t, rules, "iptables-legacy-restore", "-w")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := Host()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 || r.Mode != Legacy ||
		r.Of(Legacy, IPv4).Hint != Unknown {
		t.Errorf("allocated %d bytes, got %v, hint %v", got, r, r.Of(Legacy, IPv4).Hint)
	}
}

// The name of a native table can have any byte, and does not forge a line.
func TestNameWithNewline(t *testing.T) {
	r := Query{}.result(unasked())
	for i := range r.Evidence {
		r.Evidence[i].Rules = exactly(0)
	}
	r.Evidence[0].Native = []string{"ip x\niptables-wrapper: all is well"}
	if got := r.Uncertainty(); strings.Contains(got, "\n") ||
		!strings.Contains(got, `("ip x\niptables-wrapper: all is well")`) {
		t.Errorf("got %q", got)
	}
}

// Where there are more tables than are listed, one of a program of the host may be among them: no answer in favor of
// legacy is certain.
func TestManyTablesHidePrograms(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip a; add table ip b; add table ip c; add table ip docker-bridges")
	host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
	few := forCall
	few.tables = 2
	r := proberWithin(t, few).run()
	if e := r.Of(NFT, IPv4); r.Mode != Legacy || r.Conclusive || e.HostTable != Unknown || e.HostChain != No {
		t.Errorf("got %v, conclusive %v, table %v, chain %v", r, r.Conclusive, e.HostTable, e.HostChain)
	}
	few.tables = 9
	if r := proberWithin(t, few).run(); r.Mode != NFT || r.Reason != HostProgram || r.Conclusive {
		t.Errorf("all listed: got %v, conclusive %v", r, r.Conclusive)
	}
}

// A chain is asked for by its name all the same.
func TestManyTablesHideNoChain(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip a; add table ip b; add table ip c; add table ip filter; add chain ip filter DOCKER-USER")
	few := forCall
	few.tables = 2
	if r := proberWithin(t, few).run(); r.Mode != NFT || r.Reason != HostProgram || r.Of(NFT, IPv4).HostChain != Yes {
		t.Errorf("got %v", r)
	}
}

// One bound holds for all of legacy's tables that are searched for names before anything is counted.
func TestLargeTablesTogether(t *testing.T) {
	host.Netns(t)
	for _, table := range []string{"filter", "nat"} {
		rules := "*" + table + "\n:MINE - [0:0]\n" + strings.Repeat("-A MINE -s 192.0.2.1 -j RETURN\n",
			200) + "COMMIT\n"
		host.Feed(t, rules, "iptables-legacy-restore", "-w")
	}
	for most, want := range map[uint32]Answer{48 << 10: Unknown, 96 << 10: No} {
		limited := forCall
		limited.programs = most
		p := proberWithin(t, limited)
		p.askHints()
		p.askPrograms()
		if got := p.evidence[2].HostChain; got != want {
			t.Errorf("%d KiB: got %v, want %v", most>>10, got, want)
		}
	}
}
