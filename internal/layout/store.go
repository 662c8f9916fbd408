// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Decision is what a wrapped call has found out: an answer about the host, and what the call is about to do.
type Decision struct {
	detect.Result
	Doubted bool   // it would be certain if nobody had guessed
	Adds    bool   // the call can add something to a table
	Changes bool   // the call can change a table: add, delete or flush
	Void    bool   // what is remembered was found not to hold
	Program string // the program that is about to run
}

// toRemember returns the answer in the form in which it is remembered.
func (d Decision) toRemember() detect.Memory {
	return detect.Memory{Mode: d.Mode, Reason: d.Reason, Conclusive: d.Conclusive, Because: d.Because()}
}

// blind reports that something of one backend could not be asked.
func (d Decision) blind() bool {
	return slices.ContainsFunc(d.Evidence, func(e detect.Evidence) bool { return e.Hint == detect.Unknown })
}

// Stored is what became of a decision.
type Stored struct {
	Mode    detect.Mode // the backend to run: the decision's, or what another call stored first
	Unmoved error       // why the switch was not moved; nil if it was

	moved   string    // the directory whose switch was moved
	in      tree.Tree // in which that is pinned
	release func()    // its lock, while the program does not run yet; execve(2) does it too
}

// Undo points the switch back at the wrapper, for a program that turns out not to run, so that the next call reports
// it again.
func (n Names) Undo(s Stored) {
	if s.moved == "" {
		return
	}
	n.Tree = s.in
	_ = n.pointAtWrapper(s.moved) // the program's error is the one to report
	s.release()
}

// pointAtWrapper points the switch of a directory at the wrapper. The caller holds the lock.
func (n Names) pointAtWrapper(dir string) error {
	file, err := n.wrapperFor(dir)
	if err != nil {
		return err
	}
	return n.Tree.Point(programs.Join(dir, Switch), file)
}

var (
	errOneCall    = errors.New("an answer for this call only")
	errReads      = errors.New("the call only reads")
	errNotOwn     = errors.New("not known to be the container's own network namespace and root")
	errGuess      = errors.New("a guess")
	errElsewhere  = errors.New("the command now points elsewhere")
	errRemembered = errors.New("the container remembers another answer")
	errOther      = errors.New("a command elsewhere would run another program")
)

// Store remembers an answer and moves the switch, as far as it may: see docs/how-it-works.md. Any call stores what
// kubelet's chains say; a call that changes something, a certain count; and a call that can add something remembers
// a guess.
//
// What cannot be stored is no error to the caller of iptables: the next call decides again.
func (n Names) Store(d Decision, m *memory.Memory) Stored {
	if why := n.unstorable(d); why != nil {
		if errors.Is(why, errNotOwn) && n.leavesMark(d) {
			_ = m.Make(d.toRemember(), memory.Unbound)
		}
		return Stored{Mode: d.Mode, Unmoved: why}
	}
	s := storing{Names: n, decision: d, memory: m, stored: Stored{Mode: d.Mode}}
	s.remember()
	switch {
	case d.Conclusive && s.disagrees():
		s.stored.Unmoved = errRemembered
	case d.Conclusive || s.overtaken():
		s.stored.Unmoved = s.move()
	default:
		s.stored.Unmoved = errGuess
	}
	return s.stored
}

// unstorable says why an answer is stored neither in the memory nor in the switch; nil if it may be.
func (n Names) unstorable(d Decision) error {
	certainAlone := d.Conclusive || d.Doubted // if nobody had guessed
	switch {
	case d.Reason == detect.Override, d.Reason == detect.Remembered:
		return errOneCall
	case !n.Self.Trusted():
		return self.ErrPrivileged
	case certainAlone && !d.Reason.Kubelet() && !d.Changes:
		return errReads
	case !certainAlone && !d.Adds:
		return errGuess
	case !n.Container.Own():
		return errNotOwn
	}
	return d.Memorable()
}

// leavesMark reports whether a call that cannot tell whose container it is in leaves a link that says what it guessed.
// The container may be its own, and then the rules that it is about to write are no evidence.
func (n Names) leavesMark(d Decision) bool {
	elsewhere := n.Container.OwnNetns == detect.No || n.Container.OwnRoot == detect.No
	return !d.Conclusive && !elsewhere && d.Memorable() == nil
}

// storing is a decision on its way into the memory and the switch. Other calls may be on the same way.
//
// stored.Mode, which the call will run, begins as the decision's. Three functions change it: runAsRemembered and
// runAsSwitched, for what other calls have stored, and confirm, when this call has moved the switch itself.
type storing struct {
	Names
	decision Decision
	memory   *memory.Memory
	lastRead detect.Memory // what the memory said when runAsRemembered last compared
	stored   Stored
}

// remember makes the memory, or replaces it where kubelet's chains have decided, and follows what another call was
// faster to store.
func (s *storing) remember() {
	d, m := s.decision, s.memory
	s.lastRead = m.Remembered()
	if d.Void {
		m.Discard()
		s.lastRead = detect.Memory{}
	}
	state := memory.Guess
	if d.blind() {
		state = memory.Blind
	}
	if d.Reason.Kubelet() { // which outranks what others have chosen
		_ = m.Set(d.toRemember())
	} else {
		_ = m.Make(d.toRemember(), state)
	}
	s.runAsRemembered()
	if m.Mode() != "" || d.Reason.Kubelet() {
		return
	}
	// There is no memory. A faster call may have moved the switch.
	s.runAsSwitched(s.called())
}

// called is where the path by which the command was called leads now. Another call may move the switch at any time, so
// it is followed anew wherever that matters.
func (s *storing) called() tree.Chain {
	c, _ := s.Tree.Follow(s.Self.Called)
	return c
}

// runAsRemembered makes the call run what the memory says, if that has changed since it was last compared: another
// call has found out something since. What has not changed was known when this call decided.
func (s *storing) runAsRemembered() {
	now := s.memory.Remembered()
	if now.Mode != "" && (now.Mode != s.lastRead.Mode || now.Reason != s.lastRead.Reason) {
		s.stored.Mode = now.Mode
	}
	s.lastRead = now
}

// rereadMemory reads the memory again, and makes the call run what it says by now.
func (s *storing) rereadMemory() {
	s.memory.Refresh()
	s.runAsRemembered()
}

// runAsSwitched makes the call run the backend to which another call has pointed the switch. Where the chain ends at
// something else, nothing changes.
func (s *storing) runAsSwitched(c tree.Chain) {
	mode := c.Mode()
	if mode != "" {
		s.stored.Mode = mode
	}
}

// overtaken reports whether another call has moved the switch to a backend that is not the one that this call is about
// to run. A guess comes to that if reset has removed what the other call remembered, just before this call remembered
// its guess.
func (s *storing) overtaken() bool {
	mode := s.called().Mode()
	return mode != "" && mode != s.stored.Mode
}

// disagrees reports whether the container remembers another backend, or the same one by a guess: the rules that
// were counted may be those of the guess.
func (s *storing) disagrees() bool {
	r := s.memory.Remembered()
	return r.Mode != "" && (r.Mode != s.decision.Mode || !r.Conclusive)
}
