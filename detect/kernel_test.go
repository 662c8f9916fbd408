// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// These tests ask the running kernel, about rules that the real iptables programs made.

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
