// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Tables that were made with nft, have one of iptables' names and three rules. iptables-nft prints none of them, or, in
// some versions, those of its own chains.
var foreignTables = []struct{ name, script string }{
	{"lower-case", "add chain ip filter input { type filter hook input priority 0; }" +
		times(3, "; add rule ip filter input accept")},
	{"priority", "add chain ip filter INPUT { type filter hook input priority 10; }" +
		times(3, "; add rule ip filter INPUT accept")},
	{"hook", "add chain ip filter INPUT { type filter hook output priority 0; }" +
		times(3, "; add rule ip filter INPUT accept")},
	{"type", "add chain ip filter OUTPUT { type route hook output priority 0; }" +
		times(3, "; add rule ip filter OUTPUT accept")},
	{"beside iptables' own", "add chain ip filter INPUT { type filter hook input priority 0; }; " +
		"add chain ip filter late { type filter hook input priority 1; }" +
		times(2, "; add rule ip filter INPUT accept") + "; add rule ip filter late accept"},
}

func nftScript(t *testing.T, script string) {
	host.Feed(t, strings.ReplaceAll(script, "; add", "\nadd"), "nft", "-f", "-")
}

func TestForeignChains(t *testing.T) {
	for _, test := range foreignTables {
		t.Run(test.name, func(t *testing.T) {
			host.Netns(t)
			nftScript(t, "add table ip filter; "+test.script)
			if saved := host.Run(t, "iptables-nft-save"); strings.Count(saved, "-A ") == 3 {
				t.Fatalf("iptables-nft-save prints all rules:\n%s", saved)
			}
			for _, q := range []Query{{}, {Everything: true}} {
				if r := q.Run(); r.Mode != NFT || r.Reason != Default || r.Conclusive {
					t.Errorf("%+v alone: got %v, conclusive %v", q, r, r.Conclusive)
				}
			}
			for n := 1; n <= 4; n++ {
				host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
				for _, q := range []Query{{}, {Everything: true}} {
					r := q.Run()
					e := r.Of(NFT, IPv4)
					if r.Mode != Legacy || r.Reason != RuleCount || r.Conclusive != (n > 3) || e.Rules.Min != 0 ||
						e.Rules.Max < 3 || len(e.Foreign) != 1 && (q.Everything || !r.Conclusive) {
						t.Errorf("%+v, %d in legacy: got %v, conclusive %v, foreign %v", q, n, r, r.Conclusive,
							e.Foreign)
					}
					if q.Everything && e.Rules.Max != 3 {
						t.Errorf("got %v, want at most 3", e.Rules)
					}
				}
			}
			if r := (Query{Everything: true}).Run(); !strings.Contains(Result{Evidence: r.Evidence}.Uncertainty(),
				r.Of(NFT, IPv4).Foreign[0].Name) {
				t.Errorf("got %q", Result{Evidence: r.Evidence}.Uncertainty())
			}
		})
	}
}

// A table that was made with nft in exactly iptables' way is iptables': its rules are printed, and count.
func TestNativeChains(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip filter; add chain ip filter INPUT { type filter hook input priority 0; }; "+
		"add rule ip filter INPUT accept")
	host.Run(t, "nft", "add table inet filter { chain input { type filter hook input priority 0; }; }")
	if saved := host.Run(t, "iptables-nft-save"); strings.Count(saved, "-A ") != 1 {
		t.Fatalf("got\n%s", saved)
	}
	r := Host()
	if e := r.Of(NFT, IPv4); r.Reason != RuleCount || !r.Conclusive || len(e.Foreign) > 0 || e.Rules.Min != 1 {
		t.Errorf("got %v, %+v", r, e)
	}
}

// A dump that is not read to its end does not prevent the next one.
func TestAskAfterEnough(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1000)+"COMMIT\n", "iptables-nft-restore")
	s := newNFTSocket(forCall)
	defer s.close()
	for _, n := range []int{1, 2} {
		if got, err := s.rules(IPv4, "filter", limit{n, 1}); got[0].Count != (Count{firstRules + 2*n, Unbounded}) ||
			err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if got, err := s.rules(IPv4, "filter", unlimited); got[0].Count != exactly(1000) || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := s.tables(IPv4); !got[0].exists || got[1].exists || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// That a table has no rule is believed only after a dump that names no table: see countNFT. TestRaces in test/ finds
// answers that are wrong without it, in two of three full runs. Native rules before it make the first dump too long.
func TestEmptyTableIsAskedTwice(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip native; add chain ip native c"+strings.Repeat("; add rule ip native c accept",
		2*firstRules))
	host.Run(t, "iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "ACCEPT")
	host.Run(t, "iptables-nft", "-t", "raw", "-A", "PREROUTING", "-j", "ACCEPT")
	host.Run(t, "iptables-nft", "-N", "EMPTY")
	for _, test := range []struct {
		enough int
		want   Count
		all    bool // the last question names no table
	}{
		{1, Count{2, Unbounded}, false},
		{2, Count{2, Unbounded}, false},
		{3, exactly(2), true},
	} {
		p := newProber(Query{})
		p.lookAtNFT(test.enough)
		if got := p.evidence[0].Rules; got != (Count{0, Unbounded}) {
			t.Errorf("at first: got %v", got)
		}
		p.countNFT(test.enough)
		got := p.evidence[0].Rules
		if got.Min != test.want.Min || test.all != (got.Max == 2) || p.evidence[0].Err != nil {
			t.Errorf("enough are %d: got %v after %d questions, %v, want %v", test.enough, got, p.nft.seq,
				p.evidence[0].Err, test.want)
		}
		p.close()
	}
}

// Only the kernel's replies are read, no matter who else sends something to the socket.
func TestForgedReply(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-w", "-t", mangle, "-N", HintChain)
	var s, other nftSocket
	s.fd, other.fd = -1, -1
	for _, s := range []*nftSocket{&s, &other} {
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
		defer s.close()
		if _, err := s.chain(IPv4, HintChain); err != nil { // which binds the socket
			t.Fatal(err)
		}
	}
	address, err := unix.Getsockname(s.fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendto(other.fd, control(unix.NLMSG_ERROR, 0, s.seq+1, -int32(unix.ENOENT)), 0,
		address); err != nil {
		t.Fatal(err)
	}
	if got, err := s.chain(IPv4, HintChain); got != Yes || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// changing asks a query, and changes the host before the nth time that something else is asked.
func changing(q Query, n int, change func()) Result {
	p := newProber(q)
	defer p.close()
	p.between = func() {
		n--
		if n == 0 {
			change()
		}
	}
	return p.run()
}

// kubelet may start while the questions are asked. What it creates must not be overlooked by an answer that is kept.
func TestHintBetweenQuestions(t *testing.T) {
	hint := func(backend Mode) func(*testing.T) {
		return func(t *testing.T) { host.Run(t, program(backend, IPv6, ""), "-w", "-t", mangle, "-N", HintChain) }
	}
	canary := func(backend Mode) func(*testing.T) {
		return func(t *testing.T) { host.Run(t, program(backend, IPv4, ""), "-w", "-t", mangle, "-N", CanaryChain) }
	}
	rule := func(backend Mode) func(*testing.T) {
		return func(t *testing.T) { host.Run(t, program(backend, IPv4, ""), "-w", "-A", "INPUT", "-j", "ACCEPT") }
	}
	appears := map[Reason]bool{}
	for _, test := range []struct {
		doc            string
		before, change func(*testing.T)
		want           Result
	}{
		{"rules in nft, hint in legacy", rule(NFT), hint(Legacy), Result{Mode: Legacy, Reason: KubeletHint}},
		{"rules in legacy, hint in nft", rule(Legacy), hint(NFT), Result{Mode: NFT, Reason: KubeletHint}},
		{"canary in nft, hint in legacy", canary(NFT), hint(Legacy), Result{Mode: Legacy, Reason: KubeletHint}},
		{"canary in legacy, hint in nft", canary(Legacy), hint(NFT), Result{Mode: NFT, Reason: KubeletHint}},
		{"rules in nft, canary in legacy", rule(NFT), canary(Legacy), Result{Mode: Legacy, Reason: KubeletCanary}},
		{"rules in legacy, canary in nft", rule(Legacy), canary(NFT), Result{Mode: NFT, Reason: KubeletCanary}},
		{"canary in legacy, canary in nft", canary(Legacy), canary(NFT), Result{Mode: NFT, Reason: KubeletCanary}},
		{"canary in legacy, renewed", canary(Legacy), func(t *testing.T) {
			host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-X", CanaryChain)
		}, Result{Mode: Legacy, Reason: KubeletCanary}},
	} {
		appears[test.want.Reason] = true
		for _, q := range []Query{{}, {Everything: true}} {
			for n := 1; n <= 2; n++ {
				t.Run(test.doc, func(t *testing.T) {
					host.Netns(t)
					test.before(t)
					changed := false
					r := changing(q, n, func() { test.change(t); changed = true })
					if r.Mode != test.want.Mode || r.Reason != test.want.Reason || !r.Conclusive || !changed {
						t.Errorf("%+v, change %d: got %v, conclusive %v, want %s by %s", q, n, r, r.Conclusive,
							test.want.Mode, test.want.Reason)
					}
				})
			}
		}
	}
	for _, reason := range Reasons() {
		if reason.Kubelet() && !appears[reason] {
			t.Errorf("no row has a chain that appears between the questions and decides as %s: "+
				"run, in run_linux.go, must ask for it again", reason)
		}
	}
}

// Asked is only what can change the answer.
func TestAskedIsWhatMatters(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-w", "-t", mangle, "-N", HintChain)
	r := Query{DryRun: true}.Run()
	for _, e := range r.Evidence {
		first := e.Backend == NFT && e.Family == IPv4
		if (e.Hint == NotAsked) == first || e.Canary != NotAsked || e.Rules != (Count{0, Unbounded}) ||
			e.Features != nil {
			t.Errorf("a hint in nft: got %+v", e)
		}
	}
	if slices.ContainsFunc(r.Evidence, func(e Evidence) bool {
		return e.Backend == Legacy &&
			e.Supported != NotAsked
	}) {
		t.Errorf("legacy was asked: %+v", r.Evidence)
	}
}
