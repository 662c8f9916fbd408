// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Kind by kind is asked, and no further than the one that decides. Survey asks everything.
func TestAskedIsWhatMatters(t *testing.T) {
	host.Netns(t)
	asked := func(r Result) string {
		var kinds []string
		for _, k := range byMarker {
			nft, legacy := r.Evidence.NFT, r.Evidence.Legacy
			if *nft.answers(k) != [2]Answer{} && *legacy.answers(k) != [2]Answer{} {
				kinds = append(kinds, string(k))
			}
		}
		if r.Evidence.NFT.Counted != NotAsked && r.Evidence.Legacy.Counted != NotAsked {
			kinds = append(kinds, "rules")
		}
		return strings.Join(kinds, " ")
	}
	const everything = "kubelet-hint kubelet-canary host-program rules"
	for _, test := range []struct {
		make step
		want string
		held string
	}{
		{withRules(NFT, IPv4, 1), everything, "kubelet-hint kubelet-canary host-program"},
		{
			chain(Legacy, IPv6, "nat", "CNI-HOSTPORT-DNAT"), "kubelet-hint kubelet-canary host-program",
			"kubelet-hint kubelet-canary host-program",
		},
		{canary(NFT, IPv6), "kubelet-hint kubelet-canary", "kubelet-hint kubelet-canary"},
		{hint(Legacy, IPv6), "kubelet-hint", "kubelet-hint"},
	} {
		test.make(t)
		got := asked(ask(t, ""))
		gotHeld := asked(ask(t, Legacy))
		if got != test.want || gotHeld != test.held {
			t.Errorf("asked %q, with something held %q, want %q, %q", got, gotHeld, test.want, test.held)
		}
		all, err := Survey()
		if asked(all) != everything || err != nil {
			t.Errorf("everything: asked %q, %v", asked(all), err)
		}
	}
}

// Rules of nft are counted until they are more than those of legacy. Survey counts them all.
func TestCountStops(t *testing.T) {
	host.Netns(t)
	addRules(t, Legacy, IPv4, 2)
	addRules(t, NFT, IPv4, 9)
	got := ask(t, "").Evidence.NFT
	all, err := Survey()
	if got.Rules != 3 || got.Counted != No || all.Evidence.NFT.Rules != 9 || err != nil {
		t.Errorf("got %d, %v, everything %d, %v", got.Rules, got.Counted, all.Evidence.NFT.Rules, err)
	}
}

// The dry run is made only where it can make legacy the answer.
func TestDryRunOnlyWhereNeeded(t *testing.T) {
	for _, test := range []struct {
		doc  string
		make step
		want Answer
	}{
		{"nothing", func(*testing.T) {}, Yes},
		{"native rules", native(sixRules), Yes},
		{"a rule of iptables-nft", withRules(NFT, IPv6, 1), Yes}, // without a dry run, see below
		{"legacy is the answer", withRules(Legacy, IPv4, 1), NotAsked},
		{"a program", native("add table ip kube-proxy"), NotAsked},
		{"a hint", hint(NFT, IPv4), NotAsked},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			test.make(t)
			got := ask(t, "").Evidence
			all, err := Survey()
			if got.TakesRules != test.want || all.Evidence.TakesRules != test.want || got.Lacks != "" || err != nil {
				t.Errorf("got %v, everything %v, %v", got.TakesRules, all.Evidence.TakesRules, err)
			}
			if held := ask(t, Legacy).Evidence.TakesRules; held != NotAsked {
				t.Errorf("with something held: got %v", held)
			}
		})
	}
}

// A rule of iptables in nf_tables shows that it can be there, without a dry run, also behind native rules.
func TestRuleShowsThatRulesAreTaken(t *testing.T) {
	for _, n := range []int{0, 1} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			host.Netns(t)
			native(sixRules)(t)
			addRules(t, NFT, IPv6, n)
			a, e := start()
			defer a.nft.Close()
			e = a.count(e, false)
			host.RefuseCall(t, unix.SYS_SENDTO, unix.ENOSYS)
			e = a.dryRunIfNeeded(e)
			asked := errors.Is(e.NFT.Err, unix.ENOSYS)
			want := map[int]Answer{0: Unknown, 1: Yes}[n]
			if asked != (n == 0) || e.TakesRules != want {
				t.Errorf("asked %v, got %v", asked, e.TakesRules)
			}
		})
	}
}

// A table that is not listed is not asked for: that would create it.
func TestNoTableIsCreated(t *testing.T) {
	host.Netns(t)
	for range 2 {
		_ = ask(t, "")
		r, err := Survey()
		legacy := r.Evidence.Legacy
		if legacy.Rules != 0 || legacy.Counted != Yes || legacy.Hint != [2]Answer{No, No} || err != nil {
			t.Errorf("got %+v, %v", r, err)
		}
		for _, family := range []string{"ip", "ip6"} {
			names := string(host.Read(t, "/proc/thread-self/net/"+family+"_tables_names"))
			if names != "" {
				t.Errorf("%s: tables %q", family, names)
			}
		}
	}
	if tables := host.Run(t, "nft", "list", "tables"); tables != "" {
		t.Errorf("tables of nf_tables: %s", tables)
	}
}
