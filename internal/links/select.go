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

// Select makes the six names in a directory point to the multi-call program of a mode, whether they point to a wrapper, to a
// iptables program or do not exist yet. If a name points to anything else, it changes nothing.
//
// The container's memory is brought in line. Where the links cannot be replaced, fixed says why, and the memory alone does it,
// at the path remembered, provided that the names point to a wrapper.
func (w Wrapper) Select(dir string, mode detect.Mode) (remembered string, fixed, err error) {
	if w.secure {
		return "", nil, ErrPrivileged
	}
	program, err := w.FindIn(dir, mode, "iptables")
	if err == nil && w.IsWrapper(program) {
		err = fmt.Errorf("%q: %w", program, programs.ErrRecursion)
	}
	if err != nil {
		return "", nil, err
	}
	unlock, err := w.Lock(dir)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	l := w.layout(dir)
	if err := w.ours(l, true); err != nil {
		return "", nil, err
	}
	if fixed = w.servesAll(l, mode, program); errors.Is(fixed, programs.ErrRecursion) {
		return "", nil, fixed
	}
	if fixed == nil {
		fixed = w.writable(dir)
	}
	m := w.Memory(w.Container())
	// If other steps come before the switch is moved, it points to the wrapper for their duration, so that no name points to
	// one backend while another name, or the memory, says the other.
	names := l.outside(func(entry) bool { return true })
	if fixed == nil && (len(names) > 0 || m.mode != "" && m.mode != mode) {
		fixed = w.throughWrapper(l, names)
	}
	if err := w.selectMemory(l, &m, mode, fixed); err != nil {
		return "", nil, err
	}
	if fixed == nil {
		if err = w.point(l.sw, program); err == nil {
			w.tidy(l)
		}
	}
	return m.path, fixed, err
}

// throughWrapper points a switch that is in use at the wrapper and brings names into the layout.
func (w Wrapper) throughWrapper(l layout, names []entry) error {
	moved := l.used() && !w.isWrapperEnd(l.current)
	if len(names) == 0 && !moved {
		return nil
	}
	switch file, err := w.wrapperIn(l); {
	case err != nil:
		return err
	case len(names) == 0:
		return w.point(l.sw, file)
	default:
		return w.adopt(l, names, file, false)
	}
}

// selectMemory sets the memory to the mode. That must succeed if the links are fixed, or if the old memory contradicts it.
func (w Wrapper) selectMemory(l layout, m *Memory, mode detect.Mode, fixed error) error {
	if fixed != nil {
		for _, e := range l.names {
			if e.err != nil || !w.isWrapperEnd(e.chain) && e.chain.Mode() != mode {
				return fixed // the memory would not be asked
			}
		}
	}
	if !w.Container().Own() {
		if fixed != nil {
			return errors.Join(fixed, errForeign)
		}
		return nil
	}
	if err := m.set(mode); err != nil && (fixed != nil || m.mode != "") {
		return errors.Join(fixed, err)
	}
	return nil
}

// Reset makes the six names in a directory point to a wrapper again and removes the container's memory, whose path it returns.
// Names that point to a wrapper stay as they are. If one points to anything but a wrapper or an iptables program, it changes
// nothing.
func (w Wrapper) Reset(dir string) (forgotten string, err error) {
	if w.secure {
		return "", ErrPrivileged
	}
	unlock, err := w.Lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	l := w.layout(dir)
	if err := w.ours(l, false); err != nil {
		return "", err
	}
	if err := w.throughWrapper(l, l.outside(func(e entry) bool { return !w.isWrapperEnd(e.chain) })); err != nil {
		return "", err
	}
	w.tidy(l)
	m := w.Memory(w.Container())
	forgotten = m.path
	return forgotten, m.forget()
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
		if err := w.point(link, target); err != nil {
			return changed, err
		}
		content, _ := w.Readlink(link)
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
		case e.err != nil && e.switched: // what the switch pointed to was removed
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

// wrapperIn returns the wrapper that the switch of a directory is to point to: the one in it, or the running one. It does not
// return a link under the wrapper's name that goes through a command or through the switch itself: that would be a loop.
func (w Wrapper) wrapperIn(l layout) (string, error) {
	own := programs.Join(l.dir, WrapperName)
	c, err := w.Follow(own)
	switch {
	case err != nil || !w.isWrapperEnd(c):
		return w.Path()
	case w.throughLayout(c, l):
		return c.End, nil
	default:
		return own, nil
	}
}
