// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
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

	undo   func()
	unlock func() // the switch's directory, while undo is set; execve(2) does it too
}

// Undo points the switch back at the wrapper, for a program that turns out not to run: the next call shall report that
// again.
func (s Stored) Undo() {
	if s.undo != nil {
		s.undo()
		s.unlock()
	}
}

var (
	errThisCall   = errors.New("an answer for this call only")
	errForeign    = errors.New("not known to be the container's own network namespace and root")
	errGuess      = errors.New("a guess")
	errReads      = errors.New("the call only reads")
	errElsewhere  = errors.New("the command now points elsewhere")
	errRemembered = errors.New("the container remembers another answer")
)

// Store remembers an answer and moves the switch, as far as it may: see docs/how-it-works.md. Any call stores what kubelet's
// chains say; a call that changes something, a certain count; and a call that can add something remembers a guess.
//
// What cannot be stored is no error to the caller of iptables: the next call decides again.
func (n Names) Store(d Decision, m *memory.Memory) Stored {
	s := Stored{Mode: d.Mode}
	switch {
	case d.Reason == detect.Override, d.Reason == detect.Remembered:
		s.Unmoved = errThisCall
	case !n.Self.Trusted():
		s.Unmoved = self.ErrPrivileged
	case d.Conclusive && !d.Reason.Kubelet() && !d.Changes:
		s.Unmoved = errReads
	case !d.Conclusive && !d.Adds:
		s.Unmoved = errGuess
	case !n.Container.Own():
		if s.Unmoved = errForeign; !d.Conclusive && n.Container.MayBeOwn() && d.Memorable() == nil {
			m.Mark(d.memory())
		}
	case d.Conclusive:
		n.storeCertain(d, m, &s)
	default:
		if s.Unmoved = d.Memorable(); s.Unmoved == nil {
			if d.Void {
				m.Renew()
			}
			_ = m.Make(d.memory(), d.Blind())
			s.Mode, s.Unmoved = n.chosen(d, m), errGuess
		}
	}
	return s
}

// storeCertain remembers an answer and moves the switch. The memory comes first: whoever is killed in between leaves a memory that
// agrees with the switch, because that still leads to the wrapper.
//
// kubelet's chains replace a memory whoever holds the lock. So two calls can leave a memory at odds with the switch, which is the
// truth: the one that moved it writes the memory again, and the one that finds it moved sets the memory to what the switch says.
func (n Names) storeCertain(d Decision, m *memory.Memory, s *Stored) {
	if d.Void {
		m.Renew()
	}
	if d.Reason.Kubelet() {
		_ = m.Set(d.memory())
	} else {
		_ = m.Make(d.memory(), false)
	}
	s.Mode = n.chosen(d, m)
	if s.Unmoved = n.agrees(d, m); s.Unmoved != nil {
		return
	}
	dir, switched, unlock, err := n.lockSwitch()
	defer func() {
		if s.undo == nil && unlock != nil {
			unlock()
		}
	}()
	if err == nil {
		m.Refresh() // now that nobody else moves the switch
		err = cmp.Or(n.agrees(d, m), err)
	}
	if err == nil {
		err = n.moveSwitch(d, dir, switched)
	}
	if s.Unmoved = err; err == nil {
		s.unlock = unlock
		s.undo = func() {
			file, err := n.Self.Path()
			if own := programs.Join(dir, self.WrapperName); err != nil && n.Tree.IsWrapper(own) {
				file, err = own, nil // it was one of the names, and has been given its own
			}
			if err == nil {
				_ = n.Tree.Point(programs.Join(dir, Switch), file)
			}
		}
		if m.Refresh(); m.Mode() != "" && m.Mode() != d.Mode {
			_ = m.Set(d.memory())
		}
	}
	if !errors.Is(err, errElsewhere) {
		return
	}
	if c, err := n.Tree.Follow(n.Self.Called); err == nil && c.Mode() != "" {
		if s.Mode = c.Mode(); m.Mode() != "" && m.Mode() != s.Mode {
			_ = m.Set(detect.Memory{Mode: s.Mode, Reason: d.Reason, Conclusive: true, Because: "another call moved the switch"})
		}
	}
}

// agrees fails if the container remembers another backend, or the same one by a guess: the rules that were counted may be those of
// the guess.
func (n Names) agrees(d Decision, m *memory.Memory) error {
	if r := m.Remembered(); r.Mode != "" && (r.Mode != d.Mode || !r.Conclusive) {
		return errRemembered
	}
	return nil
}

// chosen is the backend to run: what another call made the container remember first or, where there is no memory, what the
// command leads to by now, or else the answer's. Kubelet's chains outrank them all.
func (n Names) chosen(d Decision, m *memory.Memory) detect.Mode {
	if d.Reason.Kubelet() {
		return d.Mode
	}
	if m.Mode() != "" {
		return m.Mode()
	}
	if c, err := n.Tree.Follow(n.Self.Called); err == nil && !n.toWrapper(c) {
		return cmp.Or(c.Mode(), d.Mode)
	}
	return d.Mode
}

// lockSwitch finds the directory of the switch that the called name goes through, or of the one that it should go through,
// and locks it. The name must lead to this wrapper when the lock is held: another call may have moved the switch.
func (n Names) lockSwitch() (dir string, switched bool, unlock func(), err error) {
	if n.Self.Secure {
		return "", false, nil, self.ErrPrivileged
	}
	called, err := n.Tree.Follow(n.Self.Called)
	if err != nil {
		return "", false, nil, err
	}
	sw := lastSwitch(called)
	if dir = programs.Dir(sw); sw == "" {
		dir = n.namesDir(called)
	}
	// On a read-only root every call is a first one, so nothing is tried in vain.
	if err = n.Tree.Access(dir, unix.W_OK); err == nil {
		unlock, err = n.Tree.TryLock(dir)
	}
	if err == nil {
		if called, err = n.Tree.Follow(n.Self.Called); !n.toSelf(called, err) {
			err = errElsewhere
		}
	}
	return dir, sw != "", unlock, err
}

// moveSwitch points the switch at the program. Names beside the called one that lead to this wrapper, and not through the
// switch, are brought into the layout first.
func (n Names) moveSwitch(d Decision, dir string, switched bool) error {
	l := directory{dir: dir, sw: programs.Join(dir, Switch)}
	if !switched {
		l = n.look(dir)
	}
	// The program is looked for from the switch: a link in a system directory must not lead into a directory that only
	// this call has named.
	program, err := n.Find(dir, d.Mode, "iptables")
	if err != nil {
		return err
	}
	if err := n.servesAll(l, d.Mode, program); err != nil {
		return err
	}
	if program != d.Program && !n.Tree.SameFile(program, d.Program) {
		return fmt.Errorf("%q is not %q: %w", program, d.Program, errOther)
	}
	if err := n.freeWrapper(dir); err != nil {
		return err
	}
	if !switched {
		file, err := n.Self.Path()
		if err != nil {
			return err
		}
		names := l.outside(func(e entry) bool { return n.toSelf(e.chain, e.err) })
		if l.used() && !n.toSelf(l.current, l.broken) {
			return n.join(l, names, program)
		}
		if err := n.adopt(l, names, file); err != nil {
			return err
		}
	}
	return n.Tree.Point(l.sw, program)
}

var errOther = errors.New("a command elsewhere would run another program")

// join has names follow others whose switch was moved before: only to the same program.
func (n Names) join(l directory, names []entry, program string) error {
	if l.broken != nil || !n.Tree.SameFile(l.current.End, program) {
		return fmt.Errorf("%q: %w", l.sw, errOther)
	}
	for _, e := range names {
		if err := n.Tree.Point(e.link, l.sw); err != nil {
			return err
		}
	}
	return nil
}
