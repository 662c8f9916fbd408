// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func nftScript(t *testing.T, script string) {
	t.Helper()
	host.Feed(t, strings.ReplaceAll(script, "; add", "\nadd"), "nft", "-f", "-")
}

// addRules adds n rules in table filter of a backend.
func addRules(t *testing.T, m Mode, f Family, n int) {
	t.Helper()
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -m comment --comment x -j ACCEPT\n", n)+"COMMIT\n",
		program(m, f, "-restore"), "-w", "--noflush")
}

func addChain(t *testing.T, m Mode, f Family, chain string) {
	t.Helper()
	host.Run(t, program(m, f, ""), "-w", "-t", mangle, "-N", chain)
}

// Each set of kubelet's chains, in a backend and family each.
func TestKubeletByFamily(t *testing.T) {
	type chain struct {
		m    Mode
		f    Family
		name string
	}
	for _, test := range []struct {
		doc    string
		chains []chain
		want   string // mode, reason, certain
	}{
		{"both in nft", []chain{{NFT, IPv4, HintChain}, {NFT, IPv6, HintChain}}, "nft kubelet-hint true"},
		{"both in legacy", []chain{{Legacy, IPv4, HintChain}, {Legacy, IPv6, HintChain}}, "legacy kubelet-hint true"},
		{"IPv4 in legacy, IPv6 in nft", []chain{{Legacy, IPv4, HintChain}, {NFT, IPv6, HintChain}},
			"legacy kubelet-hint false"},
		{"IPv4 in nft, IPv6 in legacy", []chain{{NFT, IPv4, HintChain}, {Legacy, IPv6, HintChain}},
			"nft kubelet-hint false"},
		{"IPv6 alone, in legacy", []chain{{Legacy, IPv6, HintChain}}, "legacy kubelet-hint true"},
		{"IPv6 alone, in nft", []chain{{NFT, IPv6, HintChain}}, "nft kubelet-hint true"},
		{"both families in both", []chain{{NFT, IPv4, HintChain}, {NFT, IPv6, HintChain}, {Legacy, IPv4, HintChain},
			{Legacy, IPv6, HintChain}}, "nft kubelet-hint true"},
		{"canaries differ", []chain{{NFT, IPv4, CanaryChain}, {Legacy, IPv6, CanaryChain}}, "nft kubelet-canary false"},
		{
			"a canary left over", []chain{{NFT, IPv4, CanaryChain}, {Legacy, IPv4, HintChain}},
			"legacy kubelet-hint true",
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			for _, c := range test.chains {
				addChain(t, c.m, c.f, c.name)
			}
			for _, q := range []Query{{}, {Everything: true}} {
				r := q.Ask()
				if got := fmt.Sprint(r.Mode, " ", r.Reason, " ", r.Conclusive); got != test.want {
					t.Errorf("%+v: got %s, want %s", q, got, test.want)
				}
				if differ := strings.Contains(r.Uncertainty(), "the families differ"); differ == r.Conclusive {
					t.Errorf("got %q", r.Uncertainty())
				}
			}
			r := Query{Remembered: Decision{Mode: NFT, Conclusive: true}}.Ask()
			if outranked := r.Reason.Kubelet(); outranked != strings.HasSuffix(test.want, "true") {
				t.Errorf("remembered: got %+v", r.Decision)
			}
		})
	}
}

// kubelet may start while the questions are asked. What it creates must not be overlooked by an answer that is stored.
func TestHintBetweenQuestions(t *testing.T) {
	rule := func(m Mode) func(*testing.T) { return func(t *testing.T) { addRules(t, m, IPv4, 1) } }
	chain := func(m Mode, f Family, name string) func(*testing.T) {
		return func(t *testing.T) { addChain(t, m, f, name) }
	}
	docker := func(t *testing.T) { host.Run(t, "iptables-nft", "-N", "DOCKER-USER") }
	for _, test := range []struct {
		doc            string
		before, change func(*testing.T)
		mode           Mode
		reason         Reason
	}{
		{"rules in nft, hint in legacy", rule(NFT), chain(Legacy, IPv6, HintChain), Legacy, KubeletHint},
		{"rules in legacy, hint in nft", rule(Legacy), chain(NFT, IPv6, HintChain), NFT, KubeletHint},
		{"a program in nft, hint in legacy", docker, chain(Legacy, IPv4, HintChain), Legacy, KubeletHint},
		{"canary in nft, hint in legacy", chain(NFT, IPv4, CanaryChain), chain(Legacy, IPv4, HintChain), Legacy,
			KubeletHint},
		{"canary in legacy, hint in nft", chain(Legacy, IPv4, CanaryChain), chain(NFT, IPv4, HintChain), NFT,
			KubeletHint},
		{"rules in nft, canary in legacy", rule(NFT), chain(Legacy, IPv4, CanaryChain), Legacy, KubeletCanary},
		{"rules in legacy, canary in nft", rule(Legacy), chain(NFT, IPv4, CanaryChain), NFT, KubeletCanary},
		{"canary in legacy, canary in nft", chain(Legacy, IPv4, CanaryChain), chain(NFT, IPv4, CanaryChain), NFT,
			KubeletCanary},
		{"canary in legacy, renewed", chain(Legacy, IPv4, CanaryChain), func(t *testing.T) {
			host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-X", CanaryChain)
		}, Legacy, KubeletCanary},
	} {
		for _, q := range []Query{{}, {Everything: true}} {
			for n := 1; n <= 2; n++ {
				t.Run(test.doc, func(t *testing.T) {
					host.Netns(t)
					test.before(t)
					p := newProber(q)
					defer p.close()
					left := n
					p.between = func() {
						left--
						if left == 0 {
							test.change(t)
						}
					}
					r := p.ask()
					if r.Mode != test.mode || r.Reason != test.reason || !r.Conclusive || left > 0 {
						t.Errorf("%+v, change %d: got %+v", q, n, r.Decision)
					}
				})
			}
		}
	}
}

// Not asked is what cannot change the answer.
func TestAskedIsWhatMatters(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-N", "DOCKER-USER")
	addRules(t, NFT, IPv4, 3)
	if a := (Query{}).Ask().NFT[IPv4]; a.HostChain != Yes || a.Rules != Unknown {
		t.Errorf("a program: got %+v", a)
	}
	if a := (Query{Remembered: Decision{Mode: Legacy}}).Ask().NFT[IPv4]; a.HostChain != Unknown || a.Canary != No {
		t.Errorf("remembered: got %+v", a)
	}
	addChain(t, NFT, IPv4, HintChain)
	if r := (Query{DryRun: true}).Ask(); r.NFT[IPv4].Canary != Unknown || r.Legacy[IPv4].Works != Unknown ||
		r.Legacy[IPv6].Works != Yes {
		t.Errorf("a hint for IPv4: got %+v", r)
	}
	addChain(t, NFT, IPv6, HintChain)
	if r := (Query{DryRun: true}).Ask(); r.Legacy[IPv6].Works != Unknown {
		t.Errorf("hints for both: got %+v", r.Legacy)
	}
	if r := (Query{Override: Legacy, DryRun: true}).Ask(); r.Reason != Override || r.NFT[IPv4].Hint != Unknown {
		t.Errorf("set: got %+v", r)
	}
}

// A thread's own namespace is asked about.
func TestThreadsNamespace(t *testing.T) {
	host.Netns(t)
	addChain(t, Legacy, IPv4, HintChain)
	if r := (Query{}).Ask(); r.Reason != KubeletHint {
		t.Errorf("got %+v", r.Decision)
	}
	host.Netns(t)
	if r := (Query{}).Ask(); r.Reason != Default {
		t.Errorf("in another one: got %+v", r.Decision)
	}
}
