// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Step 0: of some calls, nothing is stored.
func TestStores(t *testing.T) {
	kubelet := evidence.Decision{Mode: evidence.NFT, Reason: evidence.KubeletHint, Conclusive: true}
	certain := evidence.Decision{Mode: evidence.NFT, Reason: evidence.RuleCount, Conclusive: true}
	guess := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default}
	remembered := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Remembered}
	override := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Override}
	const (
		adds       = "adds"
		deletes    = "deletes"
		lists      = "lists"
		incomplete = "adds, and something was in the way"
		user       = "adds, not root"
		elsewhere  = "adds, in another container's namespace"
	)
	for _, test := range []struct {
		decision evidence.Decision
		stored   []string
	}{
		{kubelet, []string{adds, deletes, lists, incomplete}},
		{certain, []string{adds, deletes, incomplete}},
		{remembered, []string{adds, deletes, incomplete}},
		{guess, []string{adds}},
		{override, nil},
	} {
		want := map[string]bool{}
		for _, call := range test.stored {
			want[call] = true
		}
		for _, call := range []string{adds, deletes, lists, incomplete, user, elsewhere} {
			c := Call{
				Decision:   test.decision,
				Adds:       call != deletes && call != lists,
				Changes:    call != lists,
				Incomplete: call == incomplete,
				Root:       call != user,
				Own:        call != elsewhere,
			}
			if c.stores() != want[call] {
				t.Errorf("%s, a call that %s: got %v", test.decision.Reason, call, c.stores())
			}
		}
	}
}

// Kubelet's word tries 51 times to get a lock that another process has; any other call tries once, and kubelet's does
// where the switch is at its program already.
func TestTries(t *testing.T) {
	d := newDisk(t)
	d.set(d.laid(true), setting{dev: true})
	d.holdLock(true)
	for _, test := range []struct {
		doc      string
		decision evidence.Decision
		at       string
		want     int
	}{
		{"kubelet", evidence.Decision{Mode: evidence.NFT, Reason: evidence.KubeletHint, Conclusive: true}, Wrapper, 51},
		{
			"kubelet, nothing to do",
			evidence.Decision{Mode: evidence.NFT, Reason: evidence.KubeletHint, Conclusive: true},
			"xtables-nft-multi", 1,
		},
		{"a count", evidence.Decision{Mode: evidence.NFT, Reason: evidence.RuleCount, Conclusive: true}, Wrapper, 1},
	} {
		c := d.laid(true)
		c[slot(Switch)] = test.at
		d.set(c, setting{dev: true})
		tries := 0
		p := process{disk: d, step: func(operation, _ string) {
			if operation == "lock" {
				tries++
			}
		}}
		in, dev := p.open(d.commands), p.open(d.dev)
		got := Keep(Call{
			Decision: test.decision, Adds: true, Changes: true, Root: true, Own: true,
			Memory: memory.In(dev), Place: Place{Dir: in, Laid: true, Running: d.running},
		})
		in.Close()
		dev.Close()
		d.read(setting{dev: true})
		if tries != test.want || got != test.decision || d.now.get(Switch) != test.at {
			t.Errorf("%s: %d tries, runs %s, the switch is at %s", test.doc, tries, got, d.now.get(Switch))
		}
	}
}

// What select and reset refuse changes nothing. What they do not refuse is what the next call runs.
func TestSelectAndReset(t *testing.T) {
	d := newDisk(t)
	place := setting{dev: true}
	mode := evidence.Decision{Mode: evidence.Legacy, Reason: evidence.Selected, Conclusive: true}
	guess := evidence.Decision{Mode: evidence.Legacy, Reason: evidence.Default}
	laid, copied, foreign, nft, taken := d.laid(true), d.laid(false), d.laid(true), d.laid(true), d.laid(false)
	foreign[slot(Switch)] = "/bin/busybox"
	nft[slot(Switch)] = iptables.MultiCall(evidence.NFT)
	taken[slot(Wrapper)] = iptables.MultiCall(evidence.NFT)
	for _, test := range []struct {
		doc    string
		before content
		guess  bool
		fails  bool
		want   string // in the switch
	}{
		{doc: "laid", before: laid, want: iptables.MultiCall(evidence.Legacy)},
		{doc: "copied", before: copied, want: iptables.MultiCall(evidence.Legacy)},
		{doc: "at the other program", before: nft, want: iptables.MultiCall(evidence.Legacy)},
		{doc: "a guess", before: laid, guess: true, want: Wrapper},
		{doc: "a guess, at the other program", before: nft, guess: true, fails: true},
		{doc: "another file is called iptables-wrapper", before: taken, fails: true},
		{doc: "not the wrapper's", before: foreign, fails: true},
	} {
		d.set(test.before, place)
		before := d.now
		p := process{disk: d}
		in, dev := p.open(d.commands), p.open(d.dev)
		x := Directory{Dir: in, Memory: memory.In(dev), Running: d.running, Wrapper: in.Join(Wrapper)}
		decision := mode
		if test.guess {
			decision = guess
		}
		err := x.Select(decision, test.guess)
		after := d.read(place)
		switch {
		case test.fails && (err == nil || after != before):
			t.Errorf("select, %s: got %v, and %s", test.doc, err, after)
		case !test.fails && (err != nil || after.get(Switch) != test.want || memory.In(dev).Read() != decision):
			t.Errorf("select, %s: got %v, and %s", test.doc, err, after)
		}
		if !test.fails {
			host.Check(t, x.Reset())
			after = d.read(place)
			if after.get(Switch) != Wrapper || after.get(memory.Name) != "" {
				t.Errorf("reset, %s: %s", test.doc, after)
			}
		}
		in.Close()
		dev.Close()
	}
}
