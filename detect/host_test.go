// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const sixRules = "add table inet fw; add chain inet fw c { type filter hook input priority 0; }; " +
	"add rule inet fw c ct state new accept; add rule inet fw c tcp dport 22 accept; add rule inet fw c drop; " +
	"add chain inet fw d; add rule inet fw d accept; add rule inet fw d accept; add rule inet fw d accept"

// What a host has, and the answer with nothing held, nft held and legacy held.
func TestHosts(t *testing.T) {
	docker := chain(Legacy, IPv4, "filter", "DOCKER-USER")
	const (
		heldNFT    = "nft held guess"
		heldLegacy = "legacy held guess"
	)
	for _, test := range []struct {
		doc  string
		make []step
		want [3]string
	}{
		{"nothing", nil, [3]string{"nft default guess", heldNFT, heldLegacy}},
		{
			"the hint in nft", []step{hint(NFT, IPv4), hint(NFT, IPv6)},
			[3]string{"nft kubelet-hint certain", "nft kubelet-hint certain", "nft kubelet-hint certain"},
		},
		{
			"the hint in legacy", []step{hint(Legacy, IPv4), hint(Legacy, IPv6)},
			[3]string{"legacy kubelet-hint certain", "legacy kubelet-hint certain", "legacy kubelet-hint certain"},
		},
		{
			"the hint only for IPv6", []step{hint(Legacy, IPv6)},
			[3]string{"legacy kubelet-hint certain", "legacy kubelet-hint certain", "legacy kubelet-hint certain"},
		},
		{
			"the hint in both backends", []step{hint(NFT, IPv4), hint(Legacy, IPv4)},
			[3]string{"nft kubelet-hint guess", heldNFT, heldLegacy},
		},
		{
			"families that differ", []step{hint(Legacy, IPv4), hint(NFT, IPv6)},
			[3]string{"legacy kubelet-hint guess", heldNFT, heldLegacy},
		},
		{
			"a canary beside the other backend's hint", []step{canary(NFT, IPv4), hint(Legacy, IPv4)},
			[3]string{"legacy kubelet-hint certain", "legacy kubelet-hint certain", "legacy kubelet-hint certain"},
		},
		{
			"canaries that differ", []step{canary(NFT, IPv4), canary(Legacy, IPv6)},
			[3]string{"nft kubelet-canary guess", heldNFT, heldLegacy},
		},
		{
			"a canary against programs and rules", []step{canary(NFT, IPv6), docker, withRules(Legacy, IPv4, 9)},
			[3]string{"nft kubelet-canary certain", "nft kubelet-canary certain", "nft kubelet-canary certain"},
		},
		{
			"the chains of Docker in legacy", []step{docker, withRules(NFT, IPv4, 9)},
			[3]string{"legacy host-program certain", "legacy host-program certain", "legacy host-program certain"},
		},
		{
			"kube-proxy's native table, and a stray rule",
			[]step{
				native("add table ip kube-proxy; add chain ip kube-proxy c; add rule ip kube-proxy c accept"),
				withRules(Legacy, IPv4, 1),
			},
			[3]string{"nft host-program certain", "nft host-program certain", "nft host-program certain"},
		},
		{
			"firewalld's and libvirt's native tables beside Docker's chain in legacy",
			[]step{native("add table inet firewalld; add table ip libvirt_network"), docker},
			[3]string{"legacy host-program certain", "legacy host-program certain", "legacy host-program certain"},
		},
		{
			"Docker's native table beside its chain in legacy", []step{native("add table ip docker-bridges"), docker},
			[3]string{"nft host-program guess", heldNFT, heldLegacy},
		},
		{
			"a native firewall, and a rule in legacy",
			[]step{native(sixRules), withRules(Legacy, IPv4, 1)},
			[3]string{"legacy rule-count guess", heldNFT, heldLegacy},
		},
		{
			"only a native firewall", []step{native(sixRules)},
			[3]string{"nft default guess", heldNFT, heldLegacy},
		},
		{
			"rules that nft made in a table of iptables, and as many in legacy",
			[]step{
				native("add table ip raw; add chain ip raw c; add rule ip raw c accept"), withRules(Legacy, IPv4, 1),
			},
			[3]string{"nft rule-count guess", heldNFT, heldLegacy},
		},
		{
			"three empty chains",
			[]step{
				chain(Legacy, IPv4, "filter", "A"), chain(Legacy, IPv4, "nat", "B"), chain(Legacy, IPv6, "filter", "C"),
			},
			[3]string{"nft default guess", heldNFT, heldLegacy},
		},
		{
			"rules in legacy", []step{withRules(Legacy, IPv6, 6), withRules(NFT, IPv4, 5)},
			[3]string{"legacy rule-count guess", heldNFT, heldLegacy},
		},
		{
			"as many rules of all families together",
			[]step{
				withRules(Legacy, IPv4, 3), withRules(Legacy, IPv6, 3),
				withRules(NFT, IPv6, 4), withRules(NFT, IPv4, 2),
			},
			[3]string{"nft rule-count guess", heldNFT, heldLegacy},
		},
		{
			"rules of families that iptables has nothing to do with",
			[]step{
				native("add table bridge b; add chain bridge b c; add rule bridge b c accept"),
				withRules(Legacy, IPv4, 1),
			},
			[3]string{"legacy rule-count guess", heldNFT, heldLegacy},
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			for _, step := range test.make {
				step(t)
			}
			for i, held := range []Backend{"", NFT, Legacy} {
				got := summary(ask(t, held))
				if got != test.want[i] {
					t.Errorf("%q held: got %s, want %s", held, got, test.want[i])
				}
			}
			all, err := Survey()
			if summary(all) != test.want[0] || err != nil {
				t.Errorf("everything: got %s, %v, want %s", summary(all), err, test.want[0])
			}
		})
	}
}

// Rules made by a guess, and then names and rules come.
func TestGuessIsHeld(t *testing.T) {
	host.Netns(t)
	addRules(t, NFT, IPv4, 1)
	addRules(t, Legacy, IPv4, 6)
	r := ask(t, NFT)
	if summary(r) != "nft held guess" || r.Evidence.Legacy.Counted != NotAsked || r.Evidence.TakesRules != NotAsked {
		t.Errorf("six rules in the other backend: got %+v", r)
	}
	addChain(t, Legacy, IPv4, "filter", "DOCKER-USER")
	r = ask(t, NFT)
	if summary(r) != "legacy host-program certain" {
		t.Errorf("a name in the other backend: got %+v", r)
	}
}

// The network namespace of the calling thread is asked about, over descriptors that are closed again.
func TestThreadsNamespace(t *testing.T) {
	host.Netns(t)
	addChain(t, Legacy, IPv4, "mangle", hintChain)
	before := descriptors(t)
	r := ask(t, "")
	if r.Reason != KubeletHint {
		t.Errorf("got %+v", r)
	}
	host.Netns(t)
	r = ask(t, "")
	if r.Reason != Default {
		t.Errorf("in another one: got %+v", r)
	}
	if after := descriptors(t); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
}

// descriptors returns those that are sockets or files of /proc.
func descriptors(t *testing.T) string {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	host.Check(t, err)
	var open []string
	for _, link := range links {
		target, _ := os.Readlink(link) // one of them was the directory's
		if strings.HasPrefix(target, "socket:") || strings.HasPrefix(target, "/proc/") {
			open = append(open, target)
		}
	}
	return strings.Join(open, " ")
}

// Whatever a table has, its names are known: each of the kinds is asked for in the table and family where programs make
// it, and not as a part of a name.
func TestNearlyNames(t *testing.T) {
	host.Netns(t)
	for _, b := range []Backend{NFT, Legacy} {
		addChain(t, b, IPv4, "filter", hintChain)
		addChain(t, b, IPv4, "mangle", hintChain+"S")
		addChain(t, b, IPv6, "mangle", strings.ToLower(canaryChain))
		addChain(t, b, IPv4, "nat", "DOCKER-USER")
		addChain(t, b, IPv4, "filter", "DOCKER-USER-2")
		addChain(t, b, IPv4, "nat", "KUBE-SERVICES")
	}
	addNative(t, "add table inet docker-bridges; add table ip firewalld; add table bridge firewalld; "+
		"add table ip kube-proxy-2; add chain inet docker-bridges DOCKER-USER; add table netdev kube-proxy")
	r := ask(t, "")
	none := [2]Answer{No, No}
	for _, b := range []Backend{NFT, Legacy} {
		f := r.Evidence.Of(b)
		if f.Hint != none || f.Canary != none || f.Program != none || f.Names != nil {
			t.Errorf("%s: got %+v", b, f)
		}
	}
	if summary(r) != "nft default guess" {
		t.Errorf("got %+v", r)
	}
}

// CAP_NET_ADMIN is enough.
func TestWithoutOtherCapabilities(t *testing.T) {
	host.Netns(t)
	addChain(t, Legacy, IPv6, "mangle", hintChain)
	for c := range unix.CAP_LAST_CAP + 1 {
		if c != unix.CAP_NET_ADMIN {
			host.DropCapability(t, c)
		}
	}
	r := ask(t, "")
	if summary(r) != "legacy kubelet-hint certain" {
		t.Errorf("got %+v", r)
	}
}
