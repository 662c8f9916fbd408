// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// randomHost is what somebody has put into a network namespace, as input of iptables-restore and nft.
type randomHost struct {
	restore [2][2]string // by backend, in the order of Modes, and family
	native  string
	foreign bool // native changes what iptables-nft-save prints of the five tables
}

// chainNames are kubelet's, some that are almost the same, and others.
var chainNames = []string{
	HintChain, CanaryChain, HintChain + "-OLD", "KUBE-IPTABLES-HIN", "kube-iptables-hint", "X" + CanaryChain,
	"KUBE-SERVICES", "KUBE-SEP-SF3LG62VAE5ALYDV", "A", "ERRORS", strings.Repeat("N", 28),
}

// newRandomHost makes one. Much is left out of most hosts, so that each row of the table has its turn.
func newRandomHost(r *rand.Rand) (h randomHost) {
	kubelet := r.IntN(3) == 0
	programs := r.IntN(2) == 0
	most := []int{0, 1, 3, 12, 60}[r.IntN(5)]
	for i := range h.restore {
		if r.IntN(4) == 0 {
			continue
		}
		for _, f := range families {
			if r.IntN(3) > 0 {
				h.restore[i][f] = randomRules(r, f, kubelet, programs, most)
			}
		}
	}
	if r.IntN(3) == 0 {
		h.addNative(r)
	}
	return h
}

// randomRules has rules with a match, which only iptables makes, or without one.
func randomRules(r *rand.Rand, f Family, kubelet, programs bool, most int) string {
	matches := r.IntN(3) > 0
	var b strings.Builder
	for _, table := range tableNames {
		if r.IntN(3) == 0 {
			continue
		}
		fmt.Fprintf(&b, "*%s\n", table)
		chains := baseChains(table)
		add := func(name string) {
			chains = append(chains, name)
			fmt.Fprintf(&b, ":%s - [0:0]\n", name)
		}
		for _, name := range chainNames {
			if ofKubelet := name == HintChain || name == CanaryChain; r.IntN(4) == 0 && (kubelet || !ofKubelet) {
				add(name)
			}
		}
		for _, c := range hostChains {
			if programs && r.IntN(20) == 0 { // also in a table, or of a family, where they prove nothing
				add(c.chain)
			}
		}
		for range r.IntN(most + 1) {
			fmt.Fprintf(&b, "-A %s", chains[r.IntN(len(chains))])
			switch {
			case f == IPv6:
				fmt.Fprintf(&b, " -s 2001:db8::%x/128", 1+r.IntN(0xfffe))
			case r.IntN(2) == 0:
				fmt.Fprintf(&b, " -s 192.0.2.%d/32", r.IntN(256))
			}
			if matches {
				b.WriteString([]string{
					"", " -p tcp -m tcp --dport 1:" + strconv.Itoa(2+r.IntN(65000)), " -m mark --mark 0x1/0xff",
					" -m statistic --mode random --probability 0.5",
					" -m comment --comment \"" + strings.Repeat("x ", 1+r.IntN(100)) + "\"",
				}[r.IntN(5)])
			}
			b.WriteString([]string{"", " -j ACCEPT"}[r.IntN(2)] + "\n")
		}
		b.WriteString("COMMIT\n")
	}
	return b.String()
}

// addNative adds what somebody makes with nft: tables of his own, and chains and rules in iptables' tables.
func (h *randomHost) addNative(r *rand.Rand) {
	for _, table := range []string{
		"ip kube-proxy", "ip6 kube-proxy", "inet firewalld", "ip docker-bridges", "ip mine",
	} {
		if r.IntN(4) == 0 {
			h.native += "add table " + table + "\n"
		}
	}
	for range r.IntN(3) {
		table := []string{"ip ", "ip6 "}[r.IntN(2)] + tableNames[r.IntN(len(tableNames))]
		h.native += "add table " + table + "\n"
		switch r.IntN(4) {
		case 0: // like iptables' own
			h.native += "add chain " + table + " N\nadd rule " + table + " N accept\n"
		case 1: // a rule that iptables-nft cannot print
			h.native += "add chain " + table + " N\nadd rule " + table + " N ct state new accept\n"
			h.foreign = true
		case 2: // a base chain that is not iptables'
			h.native += "add chain " + table + " own { type filter hook output priority 7; }\nadd rule " + table +
				" own accept\n"
			h.foreign = true
		}
	}
}

func (h randomHost) load(tb testing.TB) {
	tb.Helper()
	for i, m := range Modes() {
		for _, f := range families {
			if rules := h.restore[i][f]; rules != "" {
				host.Feed(tb, rules, program(m, f, "-restore"), "-w")
			}
		}
	}
	if h.native != "" {
		host.Feed(tb, h.native, "nft", "-f", "-")
	}
}

// program is iptables-legacy, or ip6tables-nft with a verb.
func program(m Mode, f Family, verb string) string {
	if f == IPv6 {
		return "ip6tables-" + string(m) + verb
	}
	return "iptables-" + string(m) + verb
}

// saved is what iptables-save prints of a backend and family, as evidence.
func saved(tb testing.TB, m Mode, f Family) About {
	a := About{Hint: No, Canary: No, HostChain: No, HostTable: No, Works: Yes}
	table := ""
	for line := range strings.Lines(host.Run(tb, program(m, f, "-save"))) {
		switch name, _, _ := strings.Cut(line[1:], " "); line[0] {
		case '*':
			table = strings.TrimSpace(line[1:])
		case ':':
			isHostChain := func(c hostChain) bool { return c.table == table && c.name(f) == name }
			switch {
			case table == mangle && name == HintChain:
				a.Hint = Yes
			case table == mangle && name == CanaryChain:
				a.Canary = Yes
			case slices.ContainsFunc(hostChains[:], isHostChain):
				a.HostChain = Yes
			}
		case '-':
			a.Count++
		}
	}
	a.Rules = answer(a.Count > 0)
	return a
}

// What is read from the kernel is what iptables-save reads, and the decision is the one that its output calls for.
func TestRandomHosts(t *testing.T) {
	host.Netns(t) // or it is skipped
	seen := map[Decision]int{}
	for _, seed := range host.Seeds(t, "TEST_HOSTS") {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			host.Netns(t)
			h := newRandomHost(rand.New(rand.NewPCG(seed, 48)))
			h.load(t)
			quick, full := Query{}.Ask(), Query{Everything: true}.Ask()
			d, all := quick.Decision, full.Decision
			d.Because, all.Because = "", "" // everything may name more families
			if d != all || full.Err() != nil {
				t.Errorf("got %+v, everything says %+v, %v", d, all, full.Err())
			}
			seen[d]++
			var want [2]Backend
			for i, m := range Modes() {
				for _, f := range families {
					w := saved(t, m, f)
					got := full.Of(m)[f]
					w.HostTable = got.HostTable // which TestHostPrograms is about
					want[i][f] = w
					if m == NFT && h.foreign { // iptables-nft-save may print nothing of a table
						want[i][f] = got
						for _, a := range [][2]Answer{
							{got.Hint, w.Hint}, {got.Canary, w.Canary}, {got.HostChain, w.HostChain},
							{got.Rules, w.Rules},
						} {
							if a[0] == No && a[1] == Yes {
								t.Errorf("%s %s: got %+v, want %+v", m, f, got, w)
							}
						}
					} else if got.Hint != w.Hint || got.Canary != w.Canary || got.HostChain != w.HostChain ||
						got.Rules != w.Rules || got.Count != w.Count {
						t.Errorf("%s %s: got %+v, want %+v", m, f, got, w)
					}
				}
			}
			if got := (Query{}).row(want[0], want[1]); got != d {
				t.Errorf("got %+v, iptables-save says %+v", d, got)
			}
			if t.Failed() {
				t.Logf("%s\n%s", h.restore, h.native)
			}
		})
	}
	if len(seen) < 6 {
		t.Errorf("only %v: the test does not tell them apart", seen)
	}
}
