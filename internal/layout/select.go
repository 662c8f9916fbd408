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

// Selected is what Select did.
type Selected struct {
	Memory     string // where the container remembers the backend, "" if nowhere
	Unwritable error  // why the switch could not be moved, so that the memory alone does it; nil if it was, or was not meant to be
}

// Select makes the six names in a directory run a backend, by its multi-call program: names that lead to a wrapper, or that do not
// exist yet. It fails where the names are somebody else's, see ErrNotInstalled and ErrForeign, and changes nothing then.
//
// The container's memory is brought in line. Where the switch cannot be moved, the memory alone does it, provided that the
// names lead to a wrapper. A guess is only remembered: the names then lead to the wrapper.
func (n Names) Select(dir string, answer detect.Memory, guess bool) (s Selected, err error) {
	if n.Self.Secure {
		return s, self.ErrPrivileged
	}
	program, err := n.Find(dir, answer.Mode, "iptables")
	if err == nil && n.Tree.IsWrapper(program) {
		err = fmt.Errorf("%q: %w", program, programs.ErrRecursion)
	}
	if err != nil {
		return s, err
	}
	unlock, locked := n.Tree.Lock(dir)
	if locked == nil {
		defer unlock()
	} else if !errors.Is(locked, tree.ErrBusy) {
		return s, locked
	}
	d := n.look(dir)
	if err := n.claim(d); err != nil {
		return s, err
	}
	if s.Unwritable = n.servesAll(d, answer.Mode, program); errors.Is(s.Unwritable, programs.ErrRecursion) {
		return s, s.Unwritable
	}
	if locked != nil {
		s.Unwritable = locked
	} else if s.Unwritable == nil {
		s.Unwritable = n.Tree.Access(dir, unix.W_OK)
	}
	if guess && n.obeys(dir, "") {
		s.Unwritable = nil // nothing has to move
	}
	m := n.Memory()
	// If other steps come before the switch is moved, it leads to the wrapper for their duration, so that no name leads to
	// one backend while another name, or the memory, says the other.
	names := d.outside(func(entry) bool { return true })
	if s.Unwritable == nil && (guess || len(names) > 0 || m.Mode() != "" && m.Mode() != answer.Mode) {
		s.Unwritable = n.throughWrapper(d, names)
	}
	before := m
	if err := n.selectMemory(dir, &m, answer, s.Unwritable); err != nil {
		n.putBack(d)
		return s, err
	}
	if s.Unwritable == nil && !guess {
		if err = n.freeWrapper(dir); err == nil {
			err = n.Tree.Point(d.sw, program)
		}
		if s.Unwritable = err; err != nil && !n.obeys(dir, answer.Mode) {
			m.Restore(before)
			n.putBack(d)
			return s, err
		}
		n.tidy(d)
		if m.Refresh(); s.Unwritable == nil && m.Mode() != "" && m.Mode() != answer.Mode {
			_ = m.Set(answer) // kubelet's chains have replaced it meanwhile, which takes no lock
		}
	}
	s.Memory = m.Path()
	return s, nil
}

// putBack points a switch that was in use where it led before something failed.
func (n Names) putBack(d directory) {
	if d.used() && d.broken == nil && !n.toWrapper(d.current) {
		_ = n.Tree.Point(d.sw, d.current.Hops[1])
	}
}

// throughWrapper points a switch that is in use at the wrapper and brings names into the layout.
func (n Names) throughWrapper(d directory, names []entry) error {
	moved := d.used() && !n.toWrapper(d.current)
	if len(names) == 0 && !moved {
		return nil
	}
	switch file, err := n.wrapperIn(d); {
	case err != nil:
		return err
	case len(names) == 0:
		return n.Tree.Point(d.sw, file)
	default:
		return n.adopt(d, names, file)
	}
}

// obeys reports whether the names in a directory run a backend once the container remembers it: they lead to a wrapper, or run it
// already.
func (n Names) obeys(dir string, mode detect.Mode) bool {
	for _, e := range n.look(dir).names {
		if e.err != nil || !n.toWrapper(e.chain) && e.chain.Mode() != mode {
			return false
		}
	}
	return true
}

// selectMemory sets the memory. That must succeed if nothing else makes the names run the backend, or if the old memory says
// otherwise.
func (n Names) selectMemory(dir string, m *memory.Memory, answer detect.Memory, unwritable error) error {
	if unwritable != nil && !n.obeys(dir, answer.Mode) {
		return unwritable
	}
	if !n.Container.Own() {
		if unwritable != nil {
			return errors.Join(unwritable, errForeign)
		}
		return nil
	}
	if err := m.Set(answer); err != nil && (unwritable != nil || m.Mode() != "") {
		return errors.Join(unwritable, err)
	}
	return nil
}

// Reset makes the six names in a directory lead to a wrapper again and removes the container's memory, whose path it returns.
// Names that lead to a wrapper stay as they are. It fails where the names are somebody else's, see ErrNotInstalled and
// ErrForeign, and changes nothing then.
func (n Names) Reset(dir string) (forgotten string, err error) {
	if n.Self.Secure {
		return "", self.ErrPrivileged
	}
	unlock, err := n.Tree.Lock(dir)
	if err != nil && !errors.Is(err, tree.ErrBusy) {
		return "", err
	}
	d := n.look(dir)
	if err == nil {
		defer unlock()
	} else if !n.obeys(dir, "") { // something would have to be repointed
		return "", err
	}
	for _, e := range d.names {
		if len(e.chain.Hops) == 0 && tree.IsNotExist(e.err) {
			return "", fmt.Errorf("%q does not exist: %w", e.path, unix.ENOENT)
		}
	}
	if err := n.claim(d); err != nil {
		return "", err
	}
	m := n.Memory()
	if m.Path() != m.Own() {
		return "", memory.ErrRoots
	}
	before := m
	if err := m.Forget(); err != nil {
		return "", err
	}
	if err == nil {
		if err := n.throughWrapper(d, d.outside(func(e entry) bool { return !n.toWrapper(e.chain) })); err != nil {
			m.Restore(before)
			return "", err
		}
		n.tidy(d)
	}
	return before.Path(), nil
}

// wrapperIn returns the wrapper that the switch of a directory is to point to: the one in it, or the running one. It does not
// return a link under the wrapper's name that goes through a command or through the switch itself: that would be a loop.
func (n Names) wrapperIn(d directory) (string, error) {
	own := programs.Join(d.dir, self.WrapperName)
	c, err := n.Tree.Follow(own)
	switch {
	case err != nil || !n.toWrapper(c):
		return n.Self.Path()
	case n.throughLayout(c, d):
		return c.End, nil
	default:
		return own, nil
	}
}

// Dir returns the directory of the six commands where none is given: that of the running executable if a command or
// iptables-nft is there, else the first standard one of which that holds, else that of the running executable. In another
// tree, only the standard ones count.
func (n Names) Dir() (string, error) {
	dirs := programs.StandardDirs()
	if n.Tree.Own() {
		path, err := n.Self.Path()
		if err != nil {
			return "", err
		}
		dirs = append([]string{programs.Dir(path)}, dirs...)
	}
	for _, dir := range dirs {
		for _, name := range append(programs.Names(), programs.MultiCall(detect.NFT), programs.Single(detect.NFT, "iptables")) {
			if _, err := n.Tree.Lstat(programs.Join(dir, name)); err == nil {
				return dir, nil
			}
		}
	}
	return dirs[0], nil
}
