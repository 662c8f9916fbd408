// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func addChain(t *testing.T, program, chain string) {
	t.Helper()
	host.Run(t, program, "-w", "-t", "mangle", "-N", chain)
}

func TestHost(t *testing.T) {
	host.Netns(t)
	r := Host()
	if r.Mode != NFT || r.Reason != Default || r.Conclusive || r.Err != nil ||
		r.String() != "nft: no evidence was found, and nft is the default" {
		t.Errorf("an empty host: got %+v", r)
	}
	addChain(t, "iptables-legacy", evidence.HintChain)
	r = Host()
	if r.Mode != Legacy || r.Reason != KubeletHint || !r.Conclusive || !r.Reason.Kubelet() || r.Err != nil ||
		r.String() != "legacy: chain KUBE-IPTABLES-HINT is in legacy's mangle table (IPv4)" {
		t.Errorf("a hint in legacy: got %+v", r)
	}
}

func TestRun(t *testing.T) {
	host.Netns(t)
	if r := (Query{Installed: Legacy}).Run(); r.Mode != Legacy || r.Reason != OnlyInstalled || r.Conclusive {
		t.Errorf("only legacy is installed: got %+v", r)
	}
	if r := (Query{DryRun: true, NAT: true}).Run(); r.Mode != NFT || r.Reason != Default || r.Err != nil {
		t.Errorf("a dry run: got %+v", r)
	}
	dropNetAdmin(t)
	if r := Host(); r.Mode != NFT || r.Conclusive || !errors.Is(r.Err, unix.EPERM) {
		t.Errorf("without CAP_NET_ADMIN: got %+v", r)
	}
}

// dropNetAdmin takes the capability from the test's thread, which is not used again.
func dropNetAdmin(t *testing.T) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	host.Check(t, unix.Capget(&header, &data[0]))
	data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	host.Check(t, unix.Capset(&header, &data[0]))
}

// Rules do not end the wait, however certain.
func TestWaitKubelet(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := WaitKubelet(ended)
	if r.Mode != Legacy || r.Reason != RuleCount || !r.Conclusive || !errors.Is(err, context.Canceled) {
		t.Errorf("rules alone: got %+v, %v", r, err)
	}
	addChain(t, "iptables-nft", evidence.HintChain)
	r, err = WaitKubelet(ended)
	if r.Mode != NFT || r.Reason != KubeletHint || err != nil {
		t.Errorf("a hint: got %+v, %v", r, err)
	}
}

// A hint that is in nft for one family and in legacy for the other is not what is waited for.
func TestByKubelet(t *testing.T) {
	for _, test := range []struct {
		d    evidence.Decision
		want bool
	}{
		{evidence.Decision{Reason: KubeletHint, Conclusive: true}, true},
		{evidence.Decision{Reason: KubeletCanary, Conclusive: true}, true},
		{evidence.Decision{Reason: KubeletHint}, false},
		{evidence.Decision{Reason: RuleCount, Conclusive: true}, false},
	} {
		if got := byKubelet(evidence.Result{Decision: test.d}); got != test.want {
			t.Errorf("%+v: got %v", test.d, got)
		}
	}
}
