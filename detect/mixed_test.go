// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// mixedTable is one of nft's five tables with parts that iptables made, that nft made like iptables, and that are
// somebody else's.
type mixedTable struct {
	iptables string // lines for iptables-restore
	native   string // a script for nft
	certain  int    // rules that iptables-nft made for certain: with a match or target, in one of its chains
	rules    int
	foreign  bool // iptables-nft prints nothing of the table, or not all
}

// mix makes a random table. Each part is there or not, whatever is in the other tables.
func mix(r *rand.Rand, family Family, table string) (m mixedTable) {
	name := map[Family]string{IPv4: "ip ", IPv6: "ip6 "}[family] + table
	var users string
	for i := range r.IntN(8) {
		chain := []string{"OUTPUT", "A", "B"}[r.IntN(3)]
		if chain != "OUTPUT" && !strings.Contains(users, chain) {
			users += fmt.Sprintf(":%s - [0:0]\n", chain)
		}
		m.rules++
		if r.IntN(3) == 0 {
			m.certain++
			m.iptables += fmt.Sprintf("-A %s -m comment --comment x%d\n", chain, i)
		} else {
			m.iptables += fmt.Sprintf("-A %s -j ACCEPT\n", chain)
		}
	}
	if m.iptables != "" {
		m.iptables = "*" + table + "\n" + users + m.iptables + "COMMIT\n"
	}
	add := func(format string, args ...any) {
		m.native += fmt.Sprintf("add table %s\n", name) + fmt.Sprintf(format, args...) + "\n"
	}
	for range r.IntN(4) {
		switch r.IntN(6) {
		case 0: // like iptables' own
			add("add chain %s N\nadd rule %s N accept", name, name)
			m.rules++
		case 1: // a rule that iptables-nft cannot print
			add("add chain %s N\nadd rule %s N ct state new accept", name, name)
			m.rules++
			m.foreign = true
		case 2, 3: // a base chain that is not iptables'
			add("add chain %s own { type filter hook output priority 7; }", name)
			m.foreign = true
			for range r.IntN(3) {
				add("add rule %s own accept", name)
				m.rules++
			}
		}
	}
	return m
}

// Each table counts by itself: what is foreign in one says nothing of the others, and what iptables made for certain
// counts in a foreign table too. What little is asked says the same as everything.
func TestMixedTables(t *testing.T) {
	r := host.Rand(t)
	reasons := map[string]int{}
	for round := range 30 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			host.Netns(t)
			var want [2]Count
			counts := map[string]Count{}
			script := ""
			for i, family := range families {
				if r.IntN(3) == 0 {
					continue
				}
				for _, table := range tableNames {
					if r.IntN(2) == 0 {
						continue
					}
					m := mix(r, family, table)
					if r.IntN(2) == 0 && m.native != "" {
						host.Feed(t, m.native, "nft", "-f", "-")
						m.native = ""
					}
					host.Feed(t, m.iptables, program(NFT, family, "-restore"), "--noflush")
					if m.native != "" {
						host.Feed(t, m.native, "nft", "-f", "-")
					}
					script += m.iptables + m.native
					c := exactly(m.rules)
					if m.foreign {
						c.Min = m.certain
					}
					counts[string(family)+table] = c
					want[i] = want[i].plus(c)
				}
			}
			for n := range r.IntN(12) {
				host.Run(t, program(Legacy, families[r.IntN(2)], ""), "-w", "-t", tableNames[r.IntN(5)], "-A",
					"OUTPUT", "-m", "comment", "--comment", strings.Repeat("x", n))
			}
			quick, full := Host(), Query{Everything: true}.Run()
			if quick.Mode != full.Mode || quick.Reason != full.Reason || quick.Conclusive != full.Conclusive {
				t.Errorf("got %v, conclusive %v, but everything says %v, conclusive %v", quick, quick.Conclusive,
					full, full.Conclusive)
			}
			reasons[fmt.Sprint(quick.Mode, quick.Reason, quick.Conclusive)]++
			for i, family := range families {
				e, q := full.Of(NFT, family), quick.Of(NFT, family).Rules
				if e.Rules != want[i] || e.Err != nil {
					t.Errorf("%s: got %v, %v, want %v", family, e.Rules, e.Err, want[i])
				}
				if q.Min > e.Rules.Min || q.Max < e.Rules.Max {
					t.Errorf("%s: got %v, but everything says %v", family, q, e.Rules)
				}
				for _, table := range e.Tables {
					if got := counts[string(family)+table.Name]; table.Rules != got {
						t.Errorf("%s %s: got %v, want %v", family, table.Name, table.Rules, got)
					}
				}
				// The oracle: what is not foreign is printed in full.
				printed := save(t, NFT, family).rules
				for _, name := range tableNames {
					if c := counts[string(family)+name]; c.Min == c.Max && printed[name] != c.Min {
						t.Errorf("%s %s: iptables-nft-save prints %d rules, want %v", family, name, printed[name], c)
					}
				}
			}
			if t.Failed() {
				t.Logf("%s", script)
			}
		})
	}
	t.Log(reasons)
	if len(reasons) < 2 {
		t.Errorf("only %v: the test does not tell them apart", reasons)
	}
}
