// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// program is iptables-legacy, or ip6tables-nft with a verb.
func program(backend Mode, family Family, verb string) string {
	name := "iptables-"
	if family == IPv6 {
		name = "ip6tables-"
	}
	return name + string(backend) + verb
}

// saved is what iptables-save says: the user-defined chains and the number of rules by table.
type saved struct {
	chains map[string][]string
	rules  map[string]int
}

func save(tb testing.TB, backend Mode, family Family) saved {
	s := saved{map[string][]string{}, map[string]int{}}
	table := ""
	for line := range strings.Lines(host.Run(tb, program(backend, family, "-save"))) {
		switch line[0] {
		case '*':
			table = strings.TrimSpace(line[1:])
			s.rules[table] = 0
		case ':':
			if name, policy, _ := strings.Cut(line[1:], " "); policy[0] == '-' {
				s.chains[table] = append(s.chains[table], name)
			}
		case '-':
			s.rules[table]++
		}
	}
	return s
}

func (s saved) total() (n int) {
	for _, rules := range s.rules {
		n += rules
	}
	return n
}

func (s saved) backend(family Family) backend {
	chain := func(name string) Answer { return answer(slices.Contains(s.chains[mangle], name)) }
	return backend{
		hint:      chain(HintChain),
		canary:    chain(CanaryChain),
		hostChain: answer(s.ofPrograms(family) != nil),
		hostTable: No,
		rules:     exactly(s.total()),
		likely:    s.total(),
	}
}

// ofPrograms are the chains that programs of the host make.
func (s saved) ofPrograms(family Family) (names []string) {
	for _, c := range hostChainsOf(family) {
		if slices.Contains(s.chains[c.table], c.chain) {
			names = append(names, c.chain)
		}
	}
	return names
}

// chainNames are kubelet's, some that are almost the same, and others.
var chainNames = []string{
	HintChain, CanaryChain, HintChain + "-OLD", "KUBE-IPTABLES-HIN", "kube-iptables-hint", "X" + CanaryChain,
	"KUBE-SERVICES", "KUBE-SEP-SF3LG62VAE5ALYDV", "A", "ERRORS", strings.Repeat("N", 28),
}

// ruleset makes a random rule set in the format of iptables-restore.
func ruleset(r *rand.Rand, family Family) string {
	address := func() string {
		if family == IPv6 {
			return fmt.Sprintf("2001:db8::%x/128", 1+r.IntN(0xfffe))
		}
		return fmt.Sprintf("192.0.2.%d/32", r.IntN(256))
	}
	builtin := map[string][]string{
		"raw": {"PREROUTING", "OUTPUT"}, mangle: {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"},
		"nat": {"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}, "filter": {"INPUT", "FORWARD", "OUTPUT"},
		"security": {"INPUT", "FORWARD", "OUTPUT"},
	}
	var b strings.Builder
	for _, table := range tableNames {
		if r.IntN(3) == 0 {
			continue
		}
		fmt.Fprintf(&b, "*%s\n", table)
		var users []string
		var ofPrograms []string
		for _, c := range hostChains {
			if r.IntN(30) == 0 { // also in a table, or of a family, where they prove nothing
				ofPrograms = append(ofPrograms, c.chain)
			}
		}
		for _, name := range append(ofPrograms, chainNames...) {
			if slices.Contains(ofPrograms, name) || r.IntN(4) == 0 {
				users = append(users, name)
				fmt.Fprintf(&b, ":%s - [0:0]\n", name)
			}
		}
		chains := append(slices.Clone(builtin[table]), users...)
		for range r.IntN(3) * r.IntN(12) {
			fmt.Fprintf(&b, "-A %s", chains[r.IntN(len(chains))])
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, " -s %s", address())
			}
			switch r.IntN(5) {
			case 0:
				fmt.Fprintf(&b, " -p tcp -m tcp --dport %d", 1+r.IntN(65535))
			case 1:
				fmt.Fprintf(&b, " -m comment --comment \"%s\"", strings.Repeat("x ", 1+r.IntN(100)))
			case 2:
				fmt.Fprintf(&b, " -m mark --mark %#x/0xff", r.IntN(256))
			case 3:
				b.WriteString(" -m statistic --mode random --probability 0.5")
			}
			switch r.IntN(3) {
			case 0:
				b.WriteString(" -j ACCEPT")
			case 1:
				if table == mangle {
					b.WriteString(" -j MARK --set-xmark 0x1/0x1")
				}
			}
			b.WriteString("\n")
		}
		b.WriteString("COMMIT\n")
	}
	return b.String()
}

// What is read from the kernel is what iptables-save reads, and the decision is the one that its output calls for.
func TestKernelAgainstSave(t *testing.T) {
	r := host.Rand(t)
	for round := range 40 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			host.Netns(t)
			for _, backend := range []Mode{NFT, Legacy} {
				for _, family := range []Family{IPv4, IPv6} {
					if r.IntN(3) > 0 {
						host.Feed(t, ruleset(r, family), program(backend, family, "-restore"), "-w")
					}
				}
			}
			quick, full := Host(), Query{Everything: true}.Run()
			var sides [2]backend
			legacy := [2]legacyProbe{newLegacyProbe(IPv4, forCall), newLegacyProbe(IPv6, forCall)}
			for i, e := range full.Evidence {
				if e.Err != nil {
					t.Fatalf("%s %s: %v", e.Backend, e.Family, e.Err)
				}
				var chains []string // of mangle in legacy
				if i >= 2 {
					if _, listed := find(e.Tables, mangle); listed {
						entries, err := legacy[i-2].entries(mangle)
						if err != nil {
							t.Fatal(err)
						}
						chains = strings.Fields(sortedNames(entries))
					}
				}
				// The oracle comes last: iptables-legacy-save makes tables.
				want := save(t, e.Backend, e.Family)
				sides[i/2] = sum(sides[i/2], want.backend(e.Family), i%2 == 0)
				if e.Rules != exactly(want.total()) {
					t.Errorf("%s %s: got %v rules, want %d", e.Backend, e.Family, e.Rules, want.total())
				}
				for _, name := range tableNames {
					if got, _ := find(e.Tables, name); got != exactly(want.rules[name]) {
						t.Errorf("%s %s table %s: got %v rules, want %d", e.Backend, e.Family, name, got,
							want.rules[name])
					}
				}
				if w := want.backend(e.Family); e.Hint != w.hint || e.Canary != w.canary ||
					e.HostChain != w.hostChain || e.HostTable != No {
					t.Errorf("%s %s: got %+v, want %+v", e.Backend, e.Family, e, w)
				}
				var programs []string
				for _, p := range e.Programs {
					programs = append(programs, p.Chain)
				}
				if !slices.Equal(programs, want.ofPrograms(e.Family)) {
					t.Errorf("%s %s: got %v, want %v", e.Backend, e.Family, e.Programs, want.ofPrograms(e.Family))
				}
				if i < 2 {
					// Nft is asked for one chain at a time.
					s := newNFTSocket(forCall)
					for _, name := range chainNames {
						got, err := s.chain(e.Family, name)
						if want := answer(slices.Contains(want.chains[mangle], name)); got != want || err != nil {
							t.Errorf("%s %s chain %s: got %v, %v, want %v", e.Backend, e.Family, name, got, err, want)
						}
					}
					s.close()
				}
				slices.Sort(want.chains[mangle])
				if i >= 2 && !slices.Equal(chains, want.chains[mangle]) {
					t.Errorf("%s %s: got chains %v, want %v", e.Backend, e.Family, chains, want.chains[mangle])
				}
			}
			want := Query{}.decide(sides[0], sides[1])
			for _, got := range []Result{quick, full} {
				if got.Mode != want.mode || got.Reason != want.reason || got.Conclusive != want.conclusive {
					t.Errorf("got %v %v %v, want %v", got.Mode, got.Reason, got.Conclusive, want)
				}
			}
		})
	}
}

func find(tables []Table, name string) (Count, bool) {
	for _, t := range tables {
		if t.Name == name {
			return t.Rules, true
		}
	}
	return exactly(0), false
}

func sum(a, b backend, first bool) backend {
	if first {
		return b
	}
	return backend{
		hint: either(a.hint, b.hint), canary: either(a.canary, b.canary),
		hostChain: either(a.hostChain, b.hostChain), hostTable: either(a.hostTable, b.hostTable),
		rules: a.rules.plus(b.rules), likely: a.likely + b.likely,
	}
}

// chain asks for a chain of mangle.
func (s *nftSocket) chain(f Family, name string) (Answer, error) {
	_, has, err := s.object(f, mangle, name)
	return has, err
}
