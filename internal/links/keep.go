// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"cmp"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Answer is a decision and what kind of call it was made for.
type Answer struct {
	detect.Result
	Adds    bool   // the call can add something to a table
	Program string // the program that is about to run
}

// kubelet reports that kubelet's chains decided, which outranks the memory.
func (a Answer) kubelet() bool {
	return a.Reason == detect.KubeletHint || a.Reason == detect.KubeletCanary
}

// Kept is what became of an answer.
type Kept struct {
	Mode detect.Mode // the backend to run: the answer's, or what another call made the container remember first
	Why  error       // why the switch was not replaced; nil if it was

	undo func()
	lock int // of the switch's directory, while undo is set; execve releases it
}

// Undo points the switch back at the wrapper, for a program that turns out not to run: the next call shall report that
// again.
func (k Kept) Undo() {
	if k.undo != nil {
		k.undo()
	}
}

var (
	errThisCall   = errors.New("an answer for this call only")
	errForeign    = errors.New("not known to be the container's own network namespace and root")
	errGuess      = errors.New("not conclusive")
	errElsewhere  = errors.New("the command now points elsewhere")
	errRemembered = errors.New("another call made the container remember a backend")
)

// Keep remembers an answer and moves the switch, as far as it may: see docs/how-it-works.md. A guess is remembered only by
// a call that can add something. A conclusive answer is remembered by any call, and moves the switch if the memory says the
// same. Only kubelet's chains change a memory, and only they move the switch if another call has made it: the rules that
// were counted may be what that call added by a guess.
//
// What cannot be kept is no error to the caller of iptables: the next call decides again.
func (w Wrapper) Keep(a Answer, c Container, m Memory) Kept {
	kept := Kept{Mode: a.Mode}
	switch {
	case a.Reason == detect.Override, a.Reason == detect.Remembered:
		kept.Why = errThisCall
	case !a.Conclusive && !a.Adds:
		kept.Why = errGuess
	case !w.Trusted():
		kept.Why = ErrPrivileged
	case !c.Own():
		kept.Why = errForeign
	case !a.Conclusive:
		kept.Why = errGuess
		_, _ = m.make(a.Mode)
		kept.Mode = w.chosen(a, m)
	default:
		w.keepConclusive(a, m, &kept)
	}
	return kept
}

func (w Wrapper) keepConclusive(a Answer, m Memory, kept *Kept) {
	dir, switched, lock, err := w.lockSwitch()
	defer func() {
		if kept.undo == nil && lock >= 0 {
			unix.Close(lock)
		}
	}()
	// Two calls that both replace the memory could leave it at odds with the switch. So only the one that holds the lock
	// does, and only before the switch has moved.
	made := false
	switch {
	case err == errElsewhere:
		m.read() // what moved the switch has set it
	case m.mode == a.Mode: // it says so already
	case a.kubelet() && !errors.Is(err, ErrBusy):
		_ = m.set(a.Mode)
	default:
		made, _ = m.make(a.Mode)
	}
	kept.Mode = w.chosen(a, m)
	if m.mode != "" && !made && (m.mode != a.Mode || !a.kubelet()) {
		err = cmp.Or(err, errRemembered)
	}
	if err == nil {
		err = w.moveSwitch(a, dir, switched)
	}
	if kept.Why = err; err != nil {
		return
	}
	kept.undo = func() { // still under the lock, which execve would have released
		file, err := w.Path()
		if own := programs.Join(dir, WrapperName); err != nil && w.IsWrapper(own) {
			file, err = own, nil // it was one of the names, and has been given its own
		}
		if err == nil {
			_ = w.point(programs.Join(dir, Switch), file)
		}
		unix.Close(lock)
	}
	kept.lock = lock
}

// chosen is the backend to run: what another call made the container remember first or, where there is no memory, what the
// command points to by now, or else the answer's. Kubelet's chains outrank them all.
func (w Wrapper) chosen(a Answer, m Memory) detect.Mode {
	if a.kubelet() {
		return a.Mode
	}
	if m.mode != "" {
		return m.mode
	}
	if called, err := w.Follow(w.Called); err == nil && !w.isWrapperEnd(called) {
		return cmp.Or(called.Mode(), a.Mode)
	}
	return a.Mode
}

// lockSwitch finds the directory of the switch that the called name goes through, or of the one that it should go through,
// and locks it. The name must point to this wrapper when the lock is held: another call may have moved the switch.
func (w Wrapper) lockSwitch() (dir string, switched bool, lock int, err error) {
	if w.secure {
		return "", false, -1, ErrPrivileged
	}
	called, err := w.Follow(w.Called)
	if err != nil {
		return "", false, -1, err
	}
	sw := called.switchHop()
	if dir = programs.Dir(sw); sw == "" {
		dir = w.namesDir(called)
	}
	if lock, err = -1, w.writable(dir); err == nil {
		lock, err = w.lock(dir)
	}
	if err == nil {
		if called, err = w.Follow(w.Called); !w.toWrapper(called, err) {
			err = errElsewhere
		}
	}
	return dir, sw != "", lock, err
}

// writable says why no link in a directory can be replaced, before anything is tried in vain: on a read-only root every
// call is a first one.
func (w Wrapper) writable(dir string) error {
	if !w.Own() {
		return nil
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &os.PathError{Op: "change", Path: dir, Err: err}
	}
	return nil
}

// moveSwitch points the switch at the program. Names beside the called one that point to this wrapper, and not through the
// switch, are brought into the layout first.
func (w Wrapper) moveSwitch(a Answer, dir string, switched bool) error {
	l := layout{dir: dir, sw: programs.Join(dir, Switch)}
	if !switched {
		l = w.layout(dir)
	}
	// The program is looked for from the switch: a link in a system directory must not lead into a directory that only
	// this call has named.
	program, err := w.FindIn(dir, a.Mode, "iptables")
	if err != nil {
		return err
	}
	if err := w.servesAll(l, a.Mode, program); err != nil {
		return err
	}
	if program != a.Program && !w.SameFile(program, a.Program) {
		return errElsewhere
	}
	if switched {
		return w.point(l.sw, program)
	}
	file, err := w.Path()
	if err != nil {
		return err
	}
	names := l.outside(func(e entry) bool { return w.toWrapper(e.chain, e.err) })
	join := l.used() && !w.toWrapper(l.current, l.broken)
	if join && (l.broken != nil || !w.SameFile(l.current.End, program)) {
		return errElsewhere // the other names were repointed before: this one may join them only if they went the same way
	}
	if err := w.adopt(l, names, file, join); err != nil || join {
		return err
	}
	return w.point(l.sw, program)
}
