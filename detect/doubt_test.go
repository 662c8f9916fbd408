// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"strings"
	"testing"
)

// A count that only somebody's guess makes doubtful is worth remembering, close as it is. One that is a guess anyhow
// is so only where it is clear.
func TestDoubt(t *testing.T) {
	evidence := unasked()
	for i, n := range []int{5, 0, 3, 0} {
		e := &evidence[i]
		e.Hint = No
		e.Canary = No
		e.HostChain = No
		e.HostTable = No
		e.Rules = exactly(n)
	}
	count := Query{}.result(evidence)
	if !count.Conclusive || count.Doubt("").Doubted() || !count.Doubt("").Conclusive {
		t.Fatalf("nobody guessed: got %+v", count)
	}
	doubted := count.Doubt("/dev/shm/a\nb")
	if doubted.Conclusive || !doubted.Doubted() || doubted.Memorable() != nil || doubted.Mode != NFT {
		t.Errorf("got %+v, %v", doubted, doubted.Memorable())
	}
	if why := doubted.Uncertainty(); !strings.Contains(why, `"/dev/shm/a\nb"`) {
		t.Errorf("got %q", why)
	}
	evidence[2].Rules.Max = Unbounded
	close := Query{}.result(evidence).Doubt("a link")
	if close.Conclusive || close.Doubted() || close.Memorable() == nil {
		t.Errorf("unknown rules: got %+v, %v", close, close.Memorable())
	}
	evidence[0].Hint = Yes
	kubelet := Query{}.result(evidence).Doubt("a link")
	if !kubelet.Conclusive || kubelet.Doubted() {
		t.Errorf("kubelet: got %+v", kubelet)
	}
}

// What is remembered is a guess where the host of now is known to have another backend.
func TestContradicted(t *testing.T) {
	remembered := Result{
		Mode: NFT, Reason: Remembered, Conclusive: true,
		Remembered: &Memory{Mode: NFT, Reason: RuleCount, Conclusive: true, Because: "it had 2 rules"},
	}
	const remembers = "remembered; what decided then: it had 2 rules"
	legacy := Result{Mode: Legacy, Reason: OnlyInstalled, Conclusive: true}
	got := remembered.Contradicted(legacy)
	if got.Mode != NFT || got.Conclusive || got.Because() != remembers+"; "+
		"the host now: only the legacy programs are installed" {
		t.Errorf("got %+v: %s", got, got)
	}
	const why = "this container remembers nft, but the host uses the other backend: only the legacy programs are " +
		"installed"
	if got.Uncertainty() != why {
		t.Errorf("got %q", got.Uncertainty())
	}
	for doc, now := range map[string]Result{
		"a guess":      {Mode: Legacy, Reason: OnlyInstalled},
		"the same one": {Mode: NFT, Reason: OnlyInstalled, Conclusive: true},
	} {
		same := remembered.Contradicted(now)
		if !same.Conclusive || same.Because() != remembers {
			t.Errorf("%s: got %+v: %s", doc, same, same)
		}
	}
	count := Result{Mode: NFT, Reason: RuleCount, Conclusive: true}
	if got := count.Contradicted(legacy); !got.Conclusive {
		t.Errorf("nothing is remembered: got %+v", got)
	}
}
