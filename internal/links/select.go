// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Outcome is what Select and Reset did.
type Outcome struct {
	Moved      bool   // the switch leads where it was told to, or did before
	Remembered string // the path of the memory that was made or replaced, "" if there is none
	Forgotten  string // the path of the memory that was removed, "" if there was none
	Fixed      error  // why the links could not be changed
}

// Select makes the six names in a directory point to the multi-call program of a mode, whether they point to a wrapper, to a
// iptables program or do not exist yet. If a name points to anything else, it changes nothing.
//
// The container's memory is brought in line. Where the links cannot be replaced, the memory alone does it, provided that
// the names point to a wrapper.
func (w Wrapper) Select(dir string, mode detect.Mode) (Outcome, error) {
	if w.secure {
		return Outcome{}, ErrPrivileged
	}
	program, err := w.FindIn(dir, mode, "iptables")
	if err != nil {
		return Outcome{}, err
	}
	if w.IsWrapper(program) {
		return Outcome{}, fmt.Errorf("%q: %w", program, programs.ErrRecursion)
	}
	unlock, err := w.Lock(dir)
	if err != nil {
		return Outcome{}, err
	}
	defer unlock()
	l := w.layout(dir)
	if err := w.ours(l, true); err != nil {
		return Outcome{}, err
	}
	c := w.Container()
	m := w.Memory(c)
	fixed := w.servesAll(l, mode, program)
	if errors.Is(fixed, programs.ErrRecursion) {
		return Outcome{}, fixed
	}
	if fixed == nil {
		fixed = w.prepare(l, m.mode != "" && m.mode != mode)
	}
	remembered, err := w.selectMemory(l, c, &m, mode, fixed)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Fixed: fixed}
	if remembered {
		o.Remembered = m.path
	}
	if fixed == nil {
		if err := w.point(l.sw, program); err != nil {
			return o, err
		}
		w.tidy(l)
		o.Moved = true
	}
	return o, nil
}

// prepare brings all names into the layout. If that takes other steps before the switch can be moved, the switch is
// pointed at the wrapper for their duration, so that no name points to one backend while another name, or the memory, says the
// other.
func (w Wrapper) prepare(l layout, remembersOther bool) error {
	if err := w.writable(l.dir); err != nil {
		return err
	}
	var names []entry
	for _, e := range l.names {
		if !e.switched {
			names = append(names, e)
		}
	}
	if len(names) == 0 && (!remembersOther || w.isWrapperEnd(l.current)) {
		return nil
	}
	return w.throughWrapper(l, names)
}

// throughWrapper points a switch that is in use at the wrapper and brings names into the layout.
func (w Wrapper) throughWrapper(l layout, names []entry) error {
	file, err := w.wrapperIn(l)
	if err != nil {
		return err
	}
	if l.used() && !w.isWrapperEnd(l.current) {
		if err := w.point(l.sw, file); err != nil {
			return err
		}
		l.current, l.broken = w.Follow(l.sw)
	}
	return w.adopt(l, names, file, false)
}

// selectMemory makes the memory say the mode: it must, where the links are fixed; otherwise it must only not contradict.
func (w Wrapper) selectMemory(l layout, c Container, m *Memory, mode detect.Mode, fixed error) (bool, error) {
	if fixed != nil {
		for _, e := range l.names {
			if e.err != nil || !w.isWrapperEnd(e.chain) {
				if e.err == nil && e.chain.Mode() == mode {
					continue
				}
				return false, fixed // the memory would not be asked
			}
		}
	}
	if !c.Own() {
		if fixed != nil {
			return false, errors.Join(fixed, errForeign)
		}
		return false, nil
	}
	if err := m.set(mode); err != nil && (fixed != nil || m.mode != "") {
		return false, errors.Join(fixed, err)
	}
	return m.mode == mode, nil
}

// Reset makes the six names in a directory point to a wrapper again and removes the container's memory. Names that point to a
// wrapper stay as they are. If one points to anything but a wrapper or an iptables program, it changes nothing.
func (w Wrapper) Reset(dir string) (Outcome, error) {
	if w.secure {
		return Outcome{}, ErrPrivileged
	}
	unlock, err := w.Lock(dir)
	if err != nil {
		return Outcome{}, err
	}
	defer unlock()
	l := w.layout(dir)
	if err := w.ours(l, false); err != nil {
		return Outcome{}, err
	}
	o := Outcome{Moved: true}
	if err := w.resetLinks(l); err != nil {
		return Outcome{}, err
	}
	w.tidy(l)
	m := w.Memory(w.Container())
	o.Forgotten = m.path
	return o, m.forget()
}

func (w Wrapper) resetLinks(l layout) error {
	var names []entry
	for _, e := range l.names {
		if !e.switched && !w.isWrapperEnd(e.chain) {
			names = append(names, e)
		}
	}
	if len(names) == 0 && (!l.used() || w.isWrapperEnd(l.current)) {
		return nil
	}
	return w.throughWrapper(l, names)
}

// Lay makes the six names in a directory point to its switch, and that to a wrapper. links are what is replaced for that, in
// this order. The caller holds the lock. It returns a line for each change.
func (w Wrapper) Lay(dir, wrapper string, links []string) (changed []string, err error) {
	sw := programs.Join(dir, Switch)
	current, broken := w.Follow(sw)
	if !slices.Contains(links, sw) && (broken != nil || !w.SameFile(current.End, wrapper)) {
		links = append([]string{sw}, links...)
	}
	for _, link := range links {
		target := sw
		if link == sw {
			target = wrapper
		}
		content, err := w.Content(link, target)
		if err == nil {
			err = w.Replace(link, content)
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, link+" -> "+content)
	}
	return changed, nil
}

// ours fails if a name points to anything but a wrapper or an iptables program, or does not exist and should.
func (w Wrapper) ours(l layout, create bool) error {
	for _, e := range l.names {
		switch {
		case len(e.chain.Hops) == 0 && errors.Is(e.err, unix.ENOENT):
			if !create {
				return fmt.Errorf("%q does not exist: %w", e.path, unix.ENOENT)
			}
		case e.err != nil:
			return fmt.Errorf("%q is a dangling link: %w", e.path, e.err)
		case w.isWrapperEnd(e.chain):
		case e.chain.End == e.path:
			return fmt.Errorf("%q is a file that is neither a wrapper nor a link to an iptables program", e.path)
		case !e.chain.IsProgram():
			return fmt.Errorf("%q points to %q, which is neither a wrapper nor an iptables program", e.path, e.chain.End)
		}
	}
	return nil
}

// isWrapperEnd reports whether a chain ends at a wrapper, perhaps another copy or version.
func (w Wrapper) isWrapperEnd(c Chain) bool {
	return len(c.Hops) > 0 && c.Stat.Mode&unix.S_IFMT == unix.S_IFREG && (idOf(c.Stat) == w.file || w.IsWrapper(c.End))
}

// wrapperIn returns the wrapper that the switch of a directory is to point to: the one in it, or the running one. A link under
// the wrapper's name that goes through a command would go through the switch.
func (w Wrapper) wrapperIn(l layout) (string, error) {
	own := programs.Join(l.dir, WrapperName)
	c, err := w.Follow(own)
	switch {
	case err != nil || !w.isWrapperEnd(c):
		return w.Path()
	case w.passes(c, l.names):
		return c.End, nil
	default:
		return own, nil
	}
}
