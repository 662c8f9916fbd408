// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// move points the switch at the program: the switch that the called name goes through, or the one that it should go
// through. In the latter case the names beside it that lead to a wrapper are brought into the layout first.
//
// The memory was made before: a call killed in between leaves a memory that agrees with the switch, because
// that still leads to the wrapper. But a call that finds kubelet's chains replaces the memory whoever holds the
// lock, so that nobody can keep kubelet's word out of it. That is why the memory is looked at once more before the
// switch is moved, and after: see confirm.
//
// A guess moves no switch: it only follows one that another call has moved, see overtaken.
func (s *storing) move() error {
	if s.Self.Secure {
		return self.ErrPrivileged
	}
	dir, viaSwitch, err := s.place()
	if err != nil {
		return err
	}
	// On a read-only root every call is a first one, so nothing is tried in vain.
	if err := s.Tree.Access(dir, unix.W_OK); err != nil {
		return err
	}
	return s.moveIn(dir, viaSwitch)
}

// moveIn opens a directory, locks it and moves its switch. If the switch was moved, the directory stays locked until
// the program runs, or Undo.
func (s *storing) moveIn(dir, viaSwitch string) error {
	// Whoever owns the directory may exchange it with another one. All that follows is about the one that is opened.
	unpinned := s.Names
	pinned, unpin, err := s.Pin(dir)
	if err != nil {
		return err
	}
	s.Names = pinned
	release := unpin
	defer func() {
		if s.stored.moved == "" {
			s.Names = unpinned
			release()
		}
	}()
	unlock, err := s.lock(dir)
	if err != nil {
		return err
	}
	release = func() {
		unlock()
		unpin()
	}
	if err := s.moveLocked(dir, viaSwitch); err != nil {
		return err
	}
	s.stored.moved = dir
	s.stored.in = pinned.Tree
	s.stored.release = release
	return nil
}

// place returns the directory of the commands that the called one belongs to, and the switch there through which the
// called one goes, "" if it goes through none.
func (s *storing) place() (dir, viaSwitch string, err error) {
	called, err := s.Tree.Follow(s.Self.Called)
	if err != nil {
		return "", "", err
	}
	viaSwitch = lastSwitch(called)
	if viaSwitch == "" {
		return s.commandDir(called), "", nil
	}
	return programs.Dir(viaSwitch), viaSwitch, nil
}

// patience is how long a call waits for the lock if the switch and the memory contradict each other.
const patience = 100 * time.Millisecond

// lock takes the lock of a directory. It does not wait, except in one case: the holder of the lock has moved the
// switch, and kubelet's chains have been found since. The holder is about to look at the memory again, and to point
// the switch back at the wrapper if it sees kubelet's word there; what holds is known when it is done.
func (s *storing) lock(dir string) (unlock func(), err error) {
	unlock, err = s.Tree.TryLock(dir)
	if !errors.Is(err, tree.ErrBusy) {
		return unlock, err
	}
	s.rereadMemory()
	if !s.overtaken() {
		return nil, err
	}
	unlock, err = s.Tree.LockWithin(dir, patience)
	if err == nil {
		return unlock, nil
	}
	s.rereadMemory() // the holder may have gone on in the meantime
	s.runAsSwitched(s.called())
	return nil, err
}

// moveLocked moves the switch of a directory: the one that the called command goes through, or is to go through. The
// caller holds the lock.
func (s *storing) moveLocked(dir, viaSwitch string) error {
	called := s.called()
	if !s.toWrapper(called) || lastSwitch(called) != viaSwitch {
		return s.followSwitch(called)
	}
	s.rereadMemory() // now that nobody else moves the switch
	if !s.decision.Conclusive {
		return errGuess // the switch that it came to follow has been reset
	}
	if s.disagrees() {
		return errRemembered
	}
	program, err := s.programFor(dir)
	if err != nil {
		return err
	}
	if viaSwitch == "" {
		if err := s.adoptCalled(dir); err != nil {
			return err
		}
	}
	if err := s.Tree.Point(programs.Join(dir, Switch), program); err != nil {
		return err
	}
	return s.confirm(dir)
}

// adoptCalled brings the called name into the layout, and those beside it that lead to a wrapper. If other names
// already go through a switch that another call has moved, this call follows it.
func (s *storing) adoptCalled(dir string) error {
	d := s.look(dir)
	switched := d.sw.chain.Mode()
	if d.used() && switched != "" && switched != s.decision.Mode {
		return s.followSwitch(d.sw.chain)
	}
	err := s.adopt(d, func(e entry) bool { return e.belongs && e.wrapper })
	if err != nil {
		s.putBack(d)
	}
	return err
}

// programFor returns the program that the switch of a directory is to point to. It is looked for from the switch: a
// link in a system directory must not lead into a directory that only this call has named.
func (s *storing) programFor(dir string) (string, error) {
	program, err := s.Find(dir, s.decision.Mode, "iptables")
	if err != nil {
		return "", err
	}
	if err := s.servesAll(dir, s.decision.Mode, program); err != nil {
		return "", err
	}
	if !s.Tree.SameFile(program, s.decision.Program) {
		return "", fmt.Errorf("%q is not %q: %w", program, s.decision.Program, errOther)
	}
	return program, nil
}

// confirm looks at the memory once more when the switch has been moved. Kubelet's word may have come in between, by
// a call that found the switch at the wrapper and runs what kubelet says: then the switch goes back there, and this
// call runs the same. Otherwise the switch is the truth, and the memory is made to say so.
func (s *storing) confirm(dir string) error {
	s.rereadMemory()
	now := s.memory.Remembered()
	contradicts := now.Mode != "" && now.Mode != s.decision.Mode
	if contradicts && now.Conclusive && now.Reason.Kubelet() && s.pointAtWrapper(dir) == nil {
		return errRemembered
	}
	s.stored.Mode = s.decision.Mode // even if another call's switch was seen before, and is gone
	if contradicts {
		_ = s.memory.Set(s.decision.toRemember()) // without it, the switch holds all the same
	}
	return nil
}

// followSwitch makes the call, and the memory, follow a switch that another call has moved. The caller holds the lock.
func (s *storing) followSwitch(c tree.Chain) error {
	mode := c.Mode()
	if mode == "" {
		return errElsewhere
	}
	s.runAsSwitched(c)
	s.memory.Refresh()
	if s.memory.Mode() != "" && s.memory.Mode() != mode {
		_ = s.memory.Set(detect.Memory{
			Mode:       mode,
			Reason:     detect.Remembered,
			Conclusive: true,
			Because:    "another call moved the switch",
		})
	}
	return errElsewhere
}
