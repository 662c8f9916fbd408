// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

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
	restore map[Backend][2]string // by Family
	native  string
}

var (
	tableNames = []string{"filter", "nat", "mangle", "raw", "security"}

	// chainNames are kubelet's, some that are almost the same, and others.
	chainNames = []string{
		hintChain, canaryChain, hintChain + "-OLD", "KUBE-IPTABLES-HIN", "kube-iptables-hint", "X" + canaryChain,
		"KUBE-SERVICES", "KUBE-SEP-SF3LG62VAE5ALYDV", "A", "ERRORS", strings.Repeat("N", 28),
	}
)

// newRandomHost makes one. Much is left out of most hosts, so that each row of the table has its turn.
func newRandomHost(r *rand.Rand) randomHost {
	h := randomHost{restore: map[Backend][2]string{}}
	hasKubelet := r.IntN(3) == 0
	hasPrograms := r.IntN(2) == 0
	most := []int{0, 1, 3, 12, 60}[r.IntN(5)]
	for _, b := range []Backend{NFT, Legacy} {
		if r.IntN(4) == 0 {
			continue
		}
		var rules [2]string
		for _, f := range families {
			if r.IntN(3) > 0 {
				rules[f] = randomRules(r, f, hasKubelet, hasPrograms, most)
			}
		}
		h.restore[b] = rules
	}
	if r.IntN(3) == 0 {
		h.native = randomNative(r)
	}
	return h
}

// randomRules has chains and rules in some tables.
func randomRules(r *rand.Rand, f Family, hasKubelet, hasPrograms bool, most int) string {
	var b strings.Builder
	for _, table := range tableNames {
		if r.IntN(3) == 0 {
			continue
		}
		fmt.Fprintf(&b, "*%s\n", table)
		chains := []string{"OUTPUT"}
		add := func(name string) {
			if !slices.Contains(chains, name) {
				chains = append(chains, name)
				fmt.Fprintf(&b, ":%s - [0:0]\n", name)
			}
		}
		for _, name := range chainNames {
			ofKubelet := name == hintChain || name == canaryChain
			if r.IntN(4) == 0 && (hasKubelet || !ofKubelet) {
				add(name)
			}
		}
		for _, n := range knownMarkers {
			isProgram := n.Chain != "" && n.Program != "kubelet"
			if isProgram && hasPrograms && r.IntN(20) == 0 { // also in a table where it proves nothing
				add(n.Chain)
			}
		}
		for range r.IntN(most + 1) {
			fmt.Fprintf(&b, "-A %s%s\n", chains[r.IntN(len(chains))], randomRule(r, f))
		}
		b.WriteString("COMMIT\n")
	}
	return b.String()
}

// randomRule is the rest of a rule, without its chain.
func randomRule(r *rand.Rand, f Family) string {
	source := []string{"", fmt.Sprintf(" -s 192.0.2.%d/32", r.IntN(256))}[r.IntN(2)]
	if f == IPv6 {
		source = fmt.Sprintf(" -s 2001:db8::%x/128", 1+r.IntN(0xfffe))
	}
	match := []string{
		"", " -p tcp -m tcp --dport 1:" + strconv.Itoa(2+r.IntN(65000)), " -m mark --mark 0x1/0xff",
		" -m statistic --mode random --probability 0.5",
		" -m comment --comment \"" + strings.Repeat("x ", 1+r.IntN(100)) + "\"",
	}[r.IntN(5)]
	return source + match + []string{"", " -j ACCEPT"}[r.IntN(2)]
}

// randomNative is what somebody makes with nft: native tables, and chains and rules in iptables' tables.
func randomNative(r *rand.Rand) (commands string) {
	for _, table := range []string{
		"ip kube-proxy", "ip6 kube-proxy", "inet firewalld", "ip docker-bridges", "ip mine", "bridge firewalld",
		"arp a",
	} {
		if r.IntN(4) == 0 {
			commands += fmt.Sprintf("add table %[1]s\nadd chain %[1]s c\nadd rule %[1]s c accept\n", table)
		}
	}
	for range r.IntN(3) {
		table := []string{"ip ", "ip6 "}[r.IntN(2)] + tableNames[r.IntN(len(tableNames))]
		commands += fmt.Sprintf("add table %[1]s\nadd chain %[1]s N\nadd rule %[1]s N ct state new accept\n", table)
	}
	return commands
}

func (h randomHost) load(t *testing.T) {
	t.Helper()
	for b, rules := range h.restore {
		for _, f := range families {
			if rules[f] != "" {
				host.Feed(t, rules[f], program(b, f, "-restore"), "-w")
			}
		}
	}
	if h.native != "" {
		host.Feed(t, h.native, "nft", "-f", "-")
	}
}

// legacyListed is what iptables-legacy-save prints.
func legacyListed(t *testing.T) (l host.Listed) {
	t.Helper()
	l.BySave("ip", host.Run(t, "iptables-legacy-save"))
	l.BySave("ip6", host.Run(t, "ip6tables-legacy-save"))
	return l
}

// nftListed is what nft prints.
func nftListed(t *testing.T) (l host.Listed) {
	t.Helper()
	host.Check(t, l.ByNFT(host.Run(t, "nft", "-j", "list", "ruleset")))
	return l
}

// listed is what is listed, as Survey must find it. Where nf_tables lacks nothing, its rules are all that is counted.
func listed(l host.Listed) Findings {
	found := Findings{Kernel: Yes, Rules: l.Rules, Counted: Yes}
	for _, k := range byMarker {
		for n := range markersOf(k) {
			found = found.add(n, answerOf(slices.Contains(l.Names, n.nftName()), nil), nil)
		}
	}
	return found
}

// What is read from the kernel is what iptables-legacy-save and nft print, and the decision is the one that their
// output calls for.
func TestRandomHosts(t *testing.T) {
	host.Netns(t) // or it is skipped
	decisions := map[string]int{}
	seeds := host.Seeds(t, "TEST_HOSTS", 12, 50)
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			host.Netns(t)
			h := newRandomHost(rand.New(rand.NewPCG(seed, 48)))
			h.load(t)
			r := ask(t, "")
			all, err := Survey()
			if summary(r) != summary(all) || err != nil {
				t.Errorf("got %s, everything says %s, %v", summary(r), summary(all), err)
			}
			want := Evidence{NFT: listed(nftListed(t)), Legacy: listed(legacyListed(t))}
			want.TakesRules = all.Evidence.TakesRules
			if fmt.Sprintf("%+v", all.Evidence) != fmt.Sprintf("%+v", want) {
				t.Errorf("got\n%+v, want\n%+v", all.Evidence, want)
			}
			wanted := summary(Decide(want, ""))
			if summary(r) != wanted {
				t.Errorf("got %s, what is printed calls for %s", summary(r), wanted)
			}
			decisions[wanted]++
			if t.Failed() {
				t.Logf("%s\n%s", h.restore, h.native)
			}
		})
	}
	if len(seeds) >= 12 && len(decisions) < 5 {
		t.Errorf("only %v: the test does not tell them apart", decisions)
	}
}
