// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Selected is what Select did.
type Selected struct {
	Memory string // where the container remembers the backend, "" if nowhere

	// Unwritable is why the switch could not be moved, so that the memory alone does it; nil if the switch was
	// moved, or was not meant to be.
	Unwritable error
}

// selection is a backend on its way into the names of a directory.
type selection struct {
	Names
	before  directory // as it was found
	answer  detect.Memory
	guess   bool // it is only remembered: the names then lead to the wrapper
	program string
	memory  memory.Memory

	unwritable error // why the switch cannot be moved
	adopted    bool  // links have been changed on the way, so an error puts the switch back
}

// Select makes the six names in a directory run a backend, by its multi-call program: names that lead to a wrapper, or
// that do not exist yet. It fails where the names are somebody else's, see ErrNotInstalled and ErrForeign, and changes
// nothing then.
//
// The container's memory is brought in line. Where the switch cannot be moved, the memory alone does it, provided that
// the names lead to a wrapper. A guess is only remembered: the names then lead to the wrapper.
func (n Names) Select(dir string, answer detect.Memory, guess bool) (Selected, error) {
	held, err := n.hold(dir)
	if err != nil {
		return Selected{}, err
	}
	defer held.release()
	program, err := held.selectable(dir, answer.Mode)
	if err != nil {
		return Selected{}, err
	}
	s := selection{Names: held.Names, answer: answer, guess: guess, program: program}
	if err := s.plan(dir, held.busy); err != nil {
		return Selected{}, err
	}
	err = s.carryOut()
	if err != nil && s.adopted {
		s.putBack(s.before)
	}
	return Selected{Memory: s.memory.Path(), Unwritable: s.unwritable}, err
}

// selectable returns the program by which the names in a directory would run a backend.
func (n Names) selectable(dir string, mode detect.Mode) (string, error) {
	program, err := n.Find(dir, mode, "iptables")
	if err != nil {
		return "", err
	}
	if n.Tree.IsWrapper(program) {
		return "", fmt.Errorf("%q: %w", program, programs.ErrRecursion)
	}
	return program, nil
}

// plan looks at the directory and at the memory, and decides whether the switch is to be moved. It changes nothing.
// busy is why there is no lock.
func (s *selection) plan(dir string, busy error) error {
	s.before = s.look(dir)
	if err := s.repointable(s.before); err != nil {
		return err
	}
	unfit := s.servesAll(dir, s.answer.Mode, s.program)
	if errors.Is(unfit, errThrough) {
		return unfit // a single program is no reason to refuse: the memory can make the names run that
	}
	s.memory = s.Memory()
	denied := s.Tree.Access(dir, unix.W_OK)
	if !s.guess {
		s.unwritable = cmp.Or(busy, unfit, denied)
	} else if !s.before.allToWrapper() { // the switch will lead to the wrapper, so the program may be unfit for it
		s.unwritable = cmp.Or(busy, denied)
	}
	return nil
}

// carryOut does what was planned.
func (s *selection) carryOut() error {
	if s.throughTheWrapper() && s.unwritable == nil {
		s.adopted = true
		s.unwritable = s.adopt(s.before, func(entry) bool { return true })
	}
	if s.guess || s.unwritable != nil {
		return s.byMemory()
	}
	return s.bySwitch()
}

// throughTheWrapper reports whether the switch has to lead to the wrapper before it leads to the program. If other
// steps come before that one, it does so for their duration, and no name leads to one backend while another name,
// or the memory, says the other.
func (s *selection) throughTheWrapper() bool {
	if s.guess {
		return !s.before.allToWrapper()
	}
	outside := slices.ContainsFunc(s.before.names, func(e entry) bool { return !e.switched })
	remembered := s.memory.Mode()
	contradicts := remembered != "" && remembered != s.answer.Mode
	return outside || contradicts
}

// byMemory leaves the names where they lead. The memory alone makes them run the backend.
func (s *selection) byMemory() error {
	if !s.obeys(s.before.dir, s.answer.Mode) {
		return s.unwritable
	}
	return s.remember()
}

// bySwitch moves the switch, and sets the memory before, so that a process killed in between leaves a memory that
// agrees with the switch. Where the names run the other backend, and nothing is remembered, the memory comes after
// the switch for the same reason.
func (s *selection) bySwitch() error {
	memoryFirst := s.obeys(s.before.dir, s.answer.Mode)
	if memoryFirst {
		if err := s.remember(); err != nil {
			return err
		}
	}
	err := s.Tree.Point(s.before.sw.path, s.program)
	s.memory.Refresh()
	switch {
	case err == nil:
		_ = s.remember() // kubelet's chains may have replaced the memory meanwhile, which takes no lock
	case memoryFirst && s.memory.Mode() == s.answer.Mode:
		s.unwritable = err // the memory does it
		err = nil
	}
	s.tidy(s.before)
	return err
}

// remember sets the memory. That must succeed if nothing else makes the names run the backend, or if the old memory
// says otherwise.
func (s *selection) remember() error {
	err := errNotOwn
	if s.Container.Own() {
		err = s.memory.Set(s.answer)
	}
	switch {
	case err == nil:
		return nil
	case s.unwritable != nil:
		return errors.Join(s.unwritable, err)
	case errors.Is(err, errNotOwn), s.memory.Mode() == "": // the switch does without
		return nil
	default:
		return err
	}
}

// putBack points a switch that was in use where it led before something failed, if it has been pointed at the wrapper
// since. It does so only if that bears the name of a program: in a user's directory, a link of any other content could
// be renamed to where root's memory is looked for.
func (n Names) putBack(d directory) {
	hops := d.sw.chain.Hops
	if !d.used() || d.sw.wrapper || len(hops) < 2 {
		return
	}
	before := hops[1]
	now := n.follow(d.sw.path)
	if now.wrapper && programs.IsProgram(programs.Base(before)) {
		_ = n.Tree.Point(d.sw.path, before) // what failed first is the error to report
	}
}

// obeys reports whether all names in a directory run a backend, as they lead now, once the container remembers it.
func (n Names) obeys(dir string, mode detect.Mode) bool {
	return !slices.ContainsFunc(n.look(dir).names, func(e entry) bool { return !e.obeys(mode) })
}
