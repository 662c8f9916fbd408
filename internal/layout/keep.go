// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// Call is a wrapped call that has decided, before it runs.
type Call struct {
	Decision   evidence.Decision
	Remembered evidence.Decision // what the memory said before that
	Adds       bool              // it can add something to a table
	Changes    bool              // it can change a table: add, delete or flush
	Incomplete bool              // something momentary was in the way, or a privileged question was answered EPERM
	Root       bool              // the user is root
	Own        bool              // process 1 is known to share our root and our network namespace

	Memory memory.Memory
	Place  Place
}

// Keep stores what a call has decided, as far as it may, and returns what the call is to run: its own decision, or what
// another call has stored. What cannot be stored is no error to the caller: the next call decides again.
//
// The order of writes is a protocol, and every interleaving of it is tested. M is the memory, S the switch.
//
//	K: certain, by kubelet's chains   C: certain otherwise   G: a guess   R: remembered
//
//	0  Of some calls, nothing is stored.
//	1  K replaces M. C and G make M, or become what it says.
//	2  If the decision is certain, S is moved to its program, under the lock of DIR.
func Keep(c Call) evidence.Decision {
	if !c.stores() {
		return c.Decision
	}
	d := c.Decision
	certain := d.Conclusive
	switch {
	case c.byKubelet():
		c.rememberKubelet() // S is moved even where there can be no M
	case d.Reason == evidence.Remembered:
		certain = c.Remembered.Conclusive
	default:
		said, err := c.Memory.Make(d)
		if err != nil {
			return d
		}
		if said != d {
			d = remembered(said)
			certain = said.Conclusive
		}
	}
	if !certain {
		return d
	}
	return c.move(d)
}

// byKubelet reports whether kubelet's chains have decided for certain: K.
func (c Call) byKubelet() bool { return c.Decision.Conclusive && c.Decision.Reason.Kubelet() }

// stores is step 0.
func (c Call) stores() bool {
	d := c.Decision
	switch {
	case !c.Root, !c.Own, d.Reason == evidence.Override:
		return false
	case c.byKubelet():
		return true
	case !c.Changes, c.Incomplete && !d.Conclusive:
		return false
	}
	return c.Adds || d.Conclusive || d.Reason == evidence.Remembered
}

// rememberKubelet is step 1 for K.
func (c Call) rememberKubelet() {
	said := c.Memory.Read()
	d := c.Decision
	if said.Mode == d.Mode && said.Reason == d.Reason && said.Conclusive {
		return
	}
	_ = c.Memory.Set(d)
}

// remembered is what a call runs because another one has stored it.
func remembered(said evidence.Decision) evidence.Decision {
	said.Reason = evidence.Remembered
	return said
}

// waits is how often kubelet's word tries again to get the lock, after a millisecond each.
const waits = 50

// move is step 2.
func (c Call) move(d evidence.Decision) evidence.Decision {
	in := c.Place.Dir
	if in == nil || in.Writable() != nil {
		return d
	}
	program := Program(in, d.Mode)
	if program == "" || !c.lock(d.Mode) {
		return d
	}
	if !c.byKubelet() {
		said := c.Memory.Read()
		if said.Mode != d.Mode || !said.Conclusive {
			return d
		}
	}
	if !c.Place.Laid {
		err := adopt(c.Place)
		if err != nil {
			return d
		}
	}
	now, err := in.Readlink(Switch)
	if err != nil {
		return d
	}
	stored := storedMode(now)
	switch {
	case isWrapper(now), c.byKubelet() && stored == d.Mode.Other():
		_ = in.Replace(program, Switch)
	case stored == d.Mode.Other():
		return remembered(evidence.Decision{Mode: stored, Conclusive: true, Because: "another call pointed the switch there"})
	}
	return d
}

// lock takes the lock of DIR, which execve(2) releases. Kubelet's word must not be lost to a call that has it for a
// moment, nor wait for another user who holds it.
func (c Call) lock(mode evidence.Mode) bool {
	again := 0
	if c.byKubelet() {
		now, err := c.Place.Dir.Readlink(Switch)
		moved := err == nil && storedMode(now) == mode
		if !moved {
			again = waits
		}
	}
	return c.Place.Dir.Lock(again) == nil
}
