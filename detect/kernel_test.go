// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// These tests ask the running kernel, about rules that the real iptables programs made.

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

func (s saved) backend() backend {
	chain := func(name string) Answer { return answer(slices.Contains(s.chains[mangle], name)) }
	return backend{hint: chain(HintChain), canary: chain(CanaryChain), rules: exactly(s.total())}
}

// chainNames are kubelet's, some that are almost the same, and others.
var chainNames = []string{
	HintChain, CanaryChain, HintChain + "-OLD", "KUBE-IPTABLES-HIN", "kube-iptables-hint", "X" + CanaryChain, "KUBE-SERVICES",
	"KUBE-SEP-SF3LG62VAE5ALYDV", "A", "ERRORS", strings.Repeat("N", 28),
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
		for _, name := range chainNames {
			if r.IntN(4) == 0 {
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
			legacy := [2]legacyProbe{newLegacyProbe(IPv4), newLegacyProbe(IPv6)}
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
				sides[i/2] = sum(sides[i/2], want.backend(), i%2 == 0)
				if e.Rules != exactly(want.total()) {
					t.Errorf("%s %s: got %v rules, want %d", e.Backend, e.Family, e.Rules, want.total())
				}
				for _, name := range tableNames {
					if got, _ := find(e.Tables, name); got != exactly(want.rules[name]) {
						t.Errorf("%s %s table %s: got %v rules, want %d", e.Backend, e.Family, name, got, want.rules[name])
					}
				}
				if w := want.backend(); e.Hint != w.hint || e.Canary != w.canary {
					t.Errorf("%s %s: got hint %v, canary %v, want %v, %v", e.Backend, e.Family, e.Hint, e.Canary, w.hint, w.canary)
				}
				if i < 2 {
					// Nft is asked for one chain at a time.
					s := nftSocket{fd: -1}
					for _, name := range chainNames {
						got, err := s.chain(e.Family, name)
						if want := answer(slices.Contains(want.chains[mangle], name)); got != want || err != nil {
							t.Errorf("%s %s chain %s: got %v, %v, want %v", e.Backend, e.Family, name, got, err, want)
						}
					}
					s.close()
				}
				if slices.Sort(want.chains[mangle]); i >= 2 && !slices.Equal(chains, want.chains[mangle]) {
					t.Errorf("%s %s: got chains %v, want %v", e.Backend, e.Family, chains, want.chains[mangle])
				}
			}
			want := decide(facts{nft: sides[0], legacy: sides[1]})
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
	return backend{hint: either(a.hint, b.hint), canary: either(a.canary, b.canary), rules: a.rules.plus(b.rules)}
}

// Without CAP_NET_ADMIN the kernel does not answer, and that is not the same as "no".
func TestKernelWithoutCapability(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-N", HintChain)
	dropCapability(t, unix.CAP_NET_ADMIN)
	r := Query{Everything: true}.Run()
	if r.Mode != NFT || r.Reason != Default || r.Conclusive {
		t.Errorf("got %v %v %v, want an inconclusive default", r.Mode, r.Reason, r.Conclusive)
	}
	for _, e := range r.Evidence {
		if e.Backend == Legacy && e.Family == IPv6 {
			// There is no table, which everyone may know who may read the list of them.
			if e.Hint != No || e.Canary != No || e.Rules != exactly(0) || e.Err != nil {
				t.Errorf("legacy ipv6: got %+v", e)
			}
			continue
		}
		if e.Hint != Unknown || e.Canary != Unknown || e.Rules.Max != Unbounded || !errors.Is(e.Err, unix.EPERM) {
			t.Errorf("%s %s: got %+v, want unknown, EPERM", e.Backend, e.Family, e)
		}
	}
}

// CAP_NET_ADMIN alone is enough.
func TestKernelWithoutOtherCapabilities(t *testing.T) {
	host.Netns(t)
	host.Run(t, "ip6tables-legacy", "-w", "-t", mangle, "-N", HintChain)
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if c != unix.CAP_NET_ADMIN {
			dropCapability(t, c)
		}
	}
	if r := Host(); r.Mode != Legacy || r.Reason != KubeletHint || !r.Conclusive {
		t.Errorf("got %v %v %v, want legacy by the hint", r.Mode, r.Reason, r.Conclusive)
	}
}

// dropCapability takes a capability from the test's thread, which is not used again.
func dropCapability(t *testing.T, capability uintptr) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[capability/32].Effective &^= 1 << (capability % 32)
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
}

// A caller in another namespace than its process' first thread must see its own.
func TestKernelAsksTheThreadsNamespace(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-N", HintChain)
	if got := Host(); got.Reason != KubeletHint {
		t.Errorf("got %v, want the hint of the thread's own namespace", got.Reason)
	}
}

func TestKernelOverrideAsksNothing(t *testing.T) {
	r := Query{Override: Legacy, DryRun: true}.Run()
	if r.Mode != Legacy || r.Reason != Override || r.Conclusive {
		t.Errorf("got %+v", r)
	}
	for _, e := range r.Evidence {
		if e.Supported != NotAsked || e.Hint != NotAsked || e.Canary != NotAsked || e.Err != nil {
			t.Errorf("got %+v", e)
		}
	}
}

// BenchmarkHost is what a first call pays for the decision. With a hint it must not depend on the number of rules.
func BenchmarkHost(b *testing.B) {
	for _, backend := range []Mode{NFT, Legacy} {
		for _, hint := range []bool{true, false} {
			for _, rules := range []int{0, 1_000, 10_000} {
				b.Run(fmt.Sprintf("%s/hint=%v/rules=%d", backend, hint, rules), func(b *testing.B) {
					host.Netns(b)
					if hint {
						host.Run(b, program(backend, IPv4, ""), "-w", "-t", mangle, "-N", HintChain)
					}
					var s strings.Builder
					s.WriteString("*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\n")
					for i := range rules - 1 {
						fmt.Fprintf(&s, "-A KUBE-SERVICES -d 10.%d.%d.%d/32 -p tcp -m comment --comment \"ns/svc-%d cluster IP\" -m tcp --dport 80 -j RETURN\n",
							i>>16, i>>8&255, i&255, i)
					}
					s.WriteString("COMMIT\n")
					if rules > 0 {
						host.Feed(b, s.String(), program(backend, IPv4, "-restore"), "-w")
					}
					want := Default
					if hint {
						want = KubeletHint
					} else if rules > 0 {
						want = RuleCount
					}
					var took []time.Duration
					for b.Loop() {
						start := time.Now()
						r := Host()
						took = append(took, time.Since(start))
						if r.Reason != want || want != Default && r.Mode != backend {
							b.Fatalf("got %v %v, want %v", r.Mode, r.Reason, want)
						}
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "median-µs")
				})
			}
		}
	}
}

// BenchmarkQuestion is what each question costs.
func BenchmarkQuestion(b *testing.B) {
	for _, question := range []struct {
		name string
		ask  func(*prober) error
	}{
		{"nft chain that exists", func(p *prober) error { _, err := p.nft.chain(IPv4, HintChain); return err }},
		{"nft chain that does not", func(p *prober) error { _, err := p.nft.chain(IPv4, "NO-SUCH-CHAIN"); return err }},
		{"nft chains", func(p *prober) error { _, err := p.nft.tables(IPv4, false); return err }},
		{"nft rules", func(p *prober) error { _, err := p.nft.rules(IPv4, "filter", Unbounded); return err }},
		{"nft dry run", func(p *prober) error { return p.nft.run(newDryRun(1, true)) }},
		{"legacy list", func(p *prober) error { p.legacy[0].list(); return p.legacy[0].err }},
		{"legacy chains", func(p *prober) error { _, err := p.legacy[0].entries(mangle); return err }},
		{"legacy header", func(p *prober) error { _, err := p.legacy[0].info("filter"); return err }},
		{"legacy rules", func(p *prober) error { _, err := p.legacy[0].entries("filter"); return err }},
	} {
		b.Run(question.name, func(b *testing.B) {
			host.Netns(b)
			for _, backend := range []Mode{NFT, Legacy} {
				host.Run(b, program(backend, IPv4, ""), "-w", "-t", mangle, "-N", HintChain)
				rules := "*filter\n" + strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1000) + "COMMIT\n"
				host.Feed(b, rules, program(backend, IPv4, "-restore"), "-w")
			}
			b.ReportAllocs()
			for b.Loop() {
				p := newProber()
				if err := question.ask(p); err != nil {
					b.Fatal(err)
				}
				p.close()
			}
		})
	}
}

// Extensions agrees with the kernel's own lists of what it has, for every extension that iptables has a library for.
func TestExtensions(t *testing.T) {
	host.Netns(t)
	libraries, err := filepath.Glob("/usr/lib/*/xtables/lib*.so")
	if err != nil || len(libraries) < 50 {
		host.Cannot(t, "find the libraries of iptables: %d, %v", len(libraries), err)
	}
	var wanted []Extension
	for _, library := range libraries {
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(library), ".so"), "_")
		wanted = append(wanted, Extension{Name: name, Target: strings.ToUpper(name) == name})
	}
	wanted = append(wanted, Extension{Name: "nonsense"}, Extension{Name: "NONSENSE", Target: true},
		Extension{Name: strings.Repeat("x", 29)}, Extension{Name: ""})
	answers := map[Answer]int{}
	for _, s := range Extensions(wanted) {
		list := "/proc/thread-self/net/ip"
		if s.Family == IPv6 {
			list += "6"
		}
		list += "_tables_matches"
		if s.Target {
			list = strings.Replace(list, "matches", "targets", 1)
		}
		names, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		want := No
		if s.Name != "" && slices.Contains(strings.Split(string(names), "\n"), s.Name) {
			want = Yes
		}
		// In legacy the list is the answer. nft_compat serves what x_tables has for the family or for all.
		if s.Has != want {
			t.Errorf("%s %s %q: got %v (%v), and the kernel lists it: %v", s.Backend, s.Family, s.Name, s.Has, s.Err, want)
		}
		answers[s.Has]++
	}
	if answers[Yes] < 100 || answers[No] < 20 {
		t.Errorf("got %v", answers)
	}
}
