// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// Call is a wrapped call that has decided, before it runs.
type Call struct {
	Decision   evidence.Decision
	Remembered evidence.Decision // what the memory said before that
	Adds       bool              // it can add something to a table
	Changes    bool              // it can change a table: add, delete or flush
	Incomplete bool              // a question failed for a momentary reason, or with EPERM
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
//	0  Some calls store nothing.
//	1  K replaces M. C and G make M, or become what it says.
//	2  If the answer is certain by now, S is pointed at its program, under the lock of DIR.
func Keep(c Call) evidence.Decision {
	if !c.stores() {
		return c.Decision
	}
	d, certain := c.remember()
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
	case !c.Changes:
		return false
	case d.Conclusive, d.Reason == evidence.Remembered:
		return true
	}
	return c.Adds && !c.Incomplete
}

// remember is step 1. It returns what the call is to run, and whether the switch may point to that.
func (c Call) remember() (d evidence.Decision, certain bool) {
	d = c.Decision
	switch {
	case c.byKubelet():
		c.rememberKubelet()
		return d, true // even where there can be no memory
	case d.Reason == evidence.Remembered:
		return d, c.Remembered.Conclusive && !c.Incomplete // otherwise kubelet may have spoken, unheard
	}
	said, err := c.Memory.Make(d)
	switch {
	case err != nil:
		return d, false // step 2 reads the memory again, and would not find it
	case said == d:
		return d, d.Conclusive
	}
	return remembered(said), said.Conclusive
}

// rememberKubelet replaces the memory, unless it says the same already.
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

// move is step 2. It returns what the call is to run.
func (c Call) move(d evidence.Decision) evidence.Decision {
	in := c.Place.Dir
	if in == nil || in.Writable() != nil {
		return d
	}
	program := ContentFor(in, d.Mode)
	if program == "" {
		return d
	}
	err := in.Lock(c.patience()) // execve(2) releases it
	if err != nil {
		return d
	}
	if !c.byKubelet() {
		said := c.Memory.Read()
		if said.Mode != d.Mode || !said.Conclusive {
			return d // it was reset or replaced before this call had the lock
		}
	}
	if !c.Place.Laid {
		err = adopt(c.Place)
		if err != nil {
			return d
		}
	}
	content, err := Content(in)
	if err != nil {
		return d
	}
	stored := storedMode(content)
	switch {
	case isWrapper(content), c.byKubelet() && stored == d.Mode.Other():
		_ = in.Replace(program, Switch)
	case stored == d.Mode.Other():
		return remembered(evidence.Decision{
			Mode: stored, Conclusive: true, Because: "another call pointed the switch there",
		})
	}
	return d
}

// patience is how long the call waits for the lock. Another call may have it for a moment, and kubelet's word must not
// be lost for that. Another user may have it for ever, so kubelet's word waits only until the switch is moved.
func (c Call) patience() time.Duration {
	if !c.byKubelet() || Stored(c.Place.Dir) == c.Decision.Mode {
		return 0
	}
	return 50 * time.Millisecond
}
