// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Decision is an answer about the host, and what kind of call it was made for.
type Decision struct {
	detect.Result
	Adds    bool   // the call can add something to a table
	Changes bool   // the call can change a table: add, delete or flush
	Void    bool   // what is remembered was found not to hold
	Program string // the program that is about to run
}

// memory returns the answer in the form in which it is remembered.
func (d Decision) memory() detect.Memory {
	return detect.Memory{Mode: d.Mode, Reason: d.Reason, Conclusive: d.Conclusive, Because: d.Because()}
}

// Stored is what became of a decision.
type Stored struct {
	Mode    detect.Mode // the backend to run: the decision's, or what another call stored first
	Unmoved error       // why the switch was not moved; nil if it was

	moved  string // the directory whose switch was moved
	unlock func() // while it is moved and the program does not run yet; execve(2) does it too
}

// Undo points the switch back at the wrapper, for a program that turns out not to run: the next call shall report that
// again.
func (n Names) Undo(s Stored) {
	if s.moved == "" {
		return
	}
	if file, err := n.wrapper(directory{dir: s.moved}); err == nil {
		_ = n.Tree.Point(programs.Join(s.moved, Switch), file)
	}
	s.unlock()
}

var (
	errForeign    = errors.New("not known to be the container's own network namespace and root")
	errGuess      = errors.New("a guess")
	errElsewhere  = errors.New("the command now points elsewhere")
	errRemembered = errors.New("the container remembers another answer")
	errOther      = errors.New("a command elsewhere would run another program")
)

// Store remembers an answer and moves the switch, as far as it may: see docs/how-it-works.md. Any call stores what kubelet's
// chains say; a call that changes something, a certain count; and a call that can add something remembers a guess.
//
// What cannot be stored is no error to the caller of iptables: the next call decides again.
func (n Names) Store(d Decision, m *memory.Memory) Stored {
	s := Stored{Mode: d.Mode}
	state := memory.Guess
	if d.Blind() {
		state = memory.Blind
	}
	switch unmemorable := d.Memorable(); {
	case d.Reason == detect.Override, d.Reason == detect.Remembered:
		s.Unmoved = errors.New("an answer for this call only")
	case !n.Self.Trusted():
		s.Unmoved = self.ErrPrivileged
	case (d.Conclusive && !d.Reason.Kubelet() || d.Doubted()) && !d.Changes:
		s.Unmoved = errors.New("the call only reads")
	case !d.Conclusive && !d.Doubted() && !d.Adds:
		s.Unmoved = errGuess
	case !n.Container.Own():
		s.Unmoved = errForeign
		if c := n.Container; !d.Conclusive && c.OwnNetns != detect.No && c.OwnRoot != detect.No && unmemorable == nil { // it may be
			_ = m.Make(d.memory(), memory.Unbound)
		}
	case unmemorable != nil:
		s.Unmoved = unmemorable
	default:
		if d.Void {
			m.Renew()
		}
		s.Unmoved = errGuess
		if d.Reason.Kubelet() { // which outranks what others have chosen
			_ = m.Set(d.memory())
		} else if _ = m.Make(d.memory(), state); m.Mode() != "" {
			s.Mode = m.Mode() // of this call, or of one that was faster
		} else if c, _ := n.Tree.Follow(n.Self.Called); c.Mode() != "" {
			s.Mode = c.Mode() // there is no memory, and a faster call has moved the switch
		}
		if d.Conclusive {
			s.Unmoved = n.move(d, m, &s)
		}
	}
	return s
}

// disagrees reports whether the container remembers another backend, or the same one by a guess: the rules that were counted may be
// those of the guess.
func (d Decision) disagrees(m *memory.Memory) bool {
	r := m.Remembered()
	return r.Mode != "" && (r.Mode != d.Mode || !r.Conclusive)
}

// move points the switch at the program: the switch that the called name goes through, or the one that it should go through. Then
// the names beside it that lead to a wrapper are brought into the layout first.
//
// The memory was made before: whoever is killed in between leaves a memory that agrees with the switch, because that still leads to
// the wrapper. But kubelet's chains replace a memory whoever holds the lock. So two calls can leave a memory at odds with the switch,
// which is the truth: the one that moved it writes the memory again, and the one that finds it moved sets the memory to what the
// switch says.
func (n Names) move(d Decision, m *memory.Memory, s *Stored) error {
	if d.disagrees(m) {
		return errRemembered
	}
	if n.Self.Secure {
		return self.ErrPrivileged
	}
	called, err := n.Tree.Follow(n.Self.Called)
	if err != nil {
		return err
	}
	sw := lastSwitch(called)
	l := directory{dir: programs.Dir(sw), sw: sw}
	if sw == "" {
		_, l.dir = n.own(called)
	}
	// On a read-only root every call is a first one, so nothing is tried in vain.
	if err := n.Tree.Access(l.dir, unix.W_OK); err != nil {
		return err
	}
	if s.unlock, err = n.Tree.TryLock(l.dir); err != nil {
		return err
	}
	defer func() {
		if s.moved == "" {
			s.unlock()
		}
	}()
	if called, _ = n.Tree.Follow(n.Self.Called); !n.toWrapper(called) {
		return s.follow(called, d.Reason, m)
	}
	m.Refresh() // now that nobody else moves the switch
	if d.disagrees(m) {
		return errRemembered
	}
	// The program is looked for from the switch: a link in a system directory must not lead into a directory that only
	// this call has named.
	program, err := n.Find(l.dir, d.Mode, "iptables")
	if err != nil {
		return err
	}
	if err := n.servesAll(l.dir, d.Mode, program); err != nil {
		return err
	}
	if !n.Tree.SameFile(program, d.Program) {
		return fmt.Errorf("%q is not %q: %w", program, d.Program, errOther)
	}
	if sw == "" {
		l = n.look(l.dir)
		if mode := l.current.Mode(); l.used() && mode != "" && mode != d.Mode { // for the other names
			return s.follow(l.current, d.Reason, m)
		}
		if err := n.adopt(l, func(e entry) bool { return n.toWrapper(e.chain) }); err != nil {
			n.putBack(l)
			return err
		}
	}
	if err := n.Tree.Point(l.sw, program); err != nil {
		return err
	}
	s.moved = l.dir
	if m.Refresh(); m.Mode() != "" && m.Mode() != d.Mode {
		_ = m.Set(d.memory())
	}
	return nil
}

// follow has the call, and the memory, follow a switch that another call has moved.
func (s *Stored) follow(c tree.Chain, why detect.Reason, m *memory.Memory) error {
	if mode := c.Mode(); mode != "" {
		s.Mode = mode
		if m.Mode() != "" && m.Mode() != mode {
			_ = m.Set(detect.Memory{Mode: mode, Reason: why, Conclusive: true, Because: "another call moved the switch"})
		}
	}
	return errElsewhere
}
