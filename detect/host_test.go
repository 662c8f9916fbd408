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

// Whatever else a table has, its markers are found: each kind is asked for in the table and family where programs make
// it, and not as a part of a longer name.
func TestNearlyMarkers(t *testing.T) {
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
		if f.Hint != none || f.Canary != none || f.Program != none || f.Markers != nil {
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
