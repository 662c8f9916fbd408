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
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Lay makes links in a directory point to its switch, and that to a wrapper, which it does first. What points there
// already stays. The caller holds the lock. It returns a line for each change.
func (n Names) Lay(dir, wrapper string, links []string) (changed []string, err error) {
	sw := programs.Join(dir, Switch)
	for _, link := range append([]string{sw}, links...) {
		target := sw
		if link == sw {
			target = wrapper
		}
		content, err := n.Tree.Content(link, target)
		if err != nil {
			return changed, err
		}
		if old, _ := n.Tree.Readlink(link); old == content {
			continue
		}
		if err := n.Tree.Point(link, target); err != nil {
			return changed, err
		}
		changed = append(changed, link+" -> "+content)
	}
	return changed, nil
}

// adopt brings names into the layout. After each step a name resolves to what it did before, or to the wrapper.
func (n Names) adopt(d directory, wanted func(entry) bool) error {
	if err := n.Ours(d.sw); err != nil {
		return err
	}
	wrapper, err := n.wrapper(d)
	if err != nil {
		return err
	}
	var links []string
	for _, e := range d.names {
		if !e.switched && wanted(e) {
			links = append(links, e.link)
		}
	}
	_, err = n.Lay(d.dir, wrapper, links)
	return err
}

// wrapper returns the wrapper that the switch of a directory is to point to: the one in it, or the running one.
// That gets the wrapper's name if the name that it has will be replaced by a link.
func (n Names) wrapper(d directory) (string, error) {
	own := programs.Join(d.dir, self.WrapperName)
	if c, _ := n.Tree.Follow(own); n.toWrapper(c) && !n.throughLayout(c, d.dir) {
		return own, nil
	}
	file, err := n.Self.Path()
	if err == nil && slices.ContainsFunc(d.names, func(e entry) bool { return n.Tree.SameEntry(e.link, file) }) {
		return own, n.Tree.Link(file, own)
	}
	return file, err
}

// throughLayout reports whether a chain goes through the switch or one of the six names.
func (n Names) throughLayout(c tree.Chain, dir string) bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool {
		base := programs.Base(hop)
		return (base == Switch || programs.IsName(base)) && n.isOneOf(programs.Dir(hop), dir, AlternativesDir)
	})
}

var (
	errSingle  = errors.New("it is not a multi-call program, and one link must serve all six commands")
	errThrough = errors.New("it is reached through a command of iptables")
)

// servesAll checks that the switch may point to a program: that it is a multi-call program, and that neither it nor
// the wrapper under its own name is reached through what would then lead to the program.
func (n Names) servesAll(dir string, mode detect.Mode, program string) error {
	if programs.Base(program) != programs.MultiCall(mode) {
		return fmt.Errorf("%q: %w", program, errSingle)
	}
	for _, path := range []string{program, programs.Join(dir, self.WrapperName)} {
		if c, _ := n.Tree.Follow(path); n.throughLayout(c, dir) {
			return fmt.Errorf("%q: %w", path, errThrough)
		}
	}
	return nil
}

// tidy removes the temporary links that killed processes have left. The caller holds the lock. A name that resolves
// through another one was not replaced, so its temporary link is still there.
func (n Names) tidy(d directory) {
	for _, e := range append(d.names, entry{link: d.sw}) {
		if left := tree.Temporary(e.link, "new"); n.Tree.IsLink(left) {
			_ = n.Tree.Unlink(left) // it is in nobody's way
		}
	}
}

// Selected is what Select did.
type Selected struct {
	Memory     string // where the container remembers the backend, "" if nowhere
	Unwritable error  // why the switch could not be moved, so that the memory alone does it; nil if it was, or was not meant to be
}

// Select makes the six names in a directory run a backend, by its multi-call program: names that lead to a wrapper,
// or that do not exist yet. It fails where the names are somebody else's, see ErrNotInstalled and ErrForeign, and
// changes nothing then.
//
// The container's memory is brought in line. Where the switch cannot be moved, the memory alone does it, provided
// that the names lead to a wrapper. A guess is only remembered: the names then lead to the wrapper.
func (n Names) Select(dir string, answer detect.Memory, guess bool) (s Selected, err error) {
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
	s.Unwritable = n.servesAll(dir, answer.Mode, program)
	if errors.Is(s.Unwritable, errThrough) {
		return s, s.Unwritable
	}
	s.Unwritable = cmp.Or(locked, s.Unwritable, n.Tree.Access(dir, unix.W_OK))
	m := n.Memory()
	switch outside := slices.ContainsFunc(d.names, func(e entry) bool { return !e.switched }); {
	case guess && n.obeys(dir, ""):
		s.Unwritable = nil // nothing has to move
	case s.Unwritable == nil && (guess || outside || m.Mode() != "" && m.Mode() != answer.Mode):
		// If other steps come before the switch is moved, it leads to the wrapper for their duration, so that no
		// name leads to one backend while another name, or the memory, says the other.
		s.Unwritable = n.adopt(d, func(entry) bool { return true })
		defer func() {
			if err != nil {
				n.putBack(d)
			}
		}()
	}
	obeys := n.obeys(dir, answer.Mode)
	if err = s.Unwritable; obeys {
		err = n.remember(&m, answer, s.Unwritable)
	}
	if err == nil && s.Unwritable == nil && !guess {
		err = n.Tree.Point(d.sw, program)
		if m.Refresh(); err == nil { // kubelet's chains may have replaced the memory meanwhile, which takes no lock
			_ = n.remember(&m, answer, nil)
		} else if obeys && m.Mode() == answer.Mode {
			s.Unwritable, err = err, nil
		}
		n.tidy(d)
	}
	s.Memory = m.Path()
	return s, err
}

// putBack points a switch that was in use where it led before something failed, if it has been pointed at the
// wrapper since.
func (n Names) putBack(d directory) {
	if now, _ := n.Tree.Follow(d.sw); n.toWrapper(now) && d.used() && len(d.current.Hops) > 1 && !n.toWrapper(d.current) {
		_ = n.Tree.Point(d.sw, d.current.Hops[1])
	}
}

// obeys reports whether the names in a directory run a backend once the container remembers it: they lead to a
// wrapper, or run it already.
func (n Names) obeys(dir string, mode detect.Mode) bool {
	return !slices.ContainsFunc(n.look(dir).names, func(e entry) bool {
		return e.err != nil || !n.toWrapper(e.chain) && e.chain.Mode() != mode
	})
}

// remember sets the memory. That must succeed if nothing else makes the names run the backend, or if the old memory
// says otherwise.
func (n Names) remember(m *memory.Memory, answer detect.Memory, unwritable error) error {
	err := errForeign
	if n.Container.Own() {
		err = m.Set(answer)
	}
	if err == nil || unwritable == nil && (err == errForeign || m.Mode() == "") {
		return nil
	}
	return errors.Join(unwritable, err)
}

// Reset makes the six names in a directory lead to a wrapper again and removes the container's memory, whose path
// it returns. Names that lead to a wrapper stay as they are. It fails where the names are somebody else's, see
// ErrNotInstalled and ErrForeign, and changes nothing then.
func (n Names) Reset(dir string) (forgotten string, err error) {
	unlock, locked := n.Tree.Lock(dir)
	if locked == nil {
		defer unlock()
	} else if !errors.Is(locked, tree.ErrBusy) {
		return "", locked
	}
	d := n.look(dir)
	for _, e := range d.names {
		if len(e.chain.Hops) == 0 && tree.IsNotExist(e.err) {
			return "", fmt.Errorf("%q does not exist: %w", e.path, unix.ENOENT)
		}
	}
	if err := n.claim(d); err != nil {
		return "", err
	}
	m := n.Memory()
	if forgotten = m.Path(); forgotten != "" && forgotten != m.Own() {
		return "", memory.ErrRoots
	}
	if !n.obeys(dir, "") { // something has to be repointed
		if locked != nil {
			return "", locked
		}
		err = n.adopt(d, func(e entry) bool { return !n.toWrapper(e.chain) })
	}
	if err == nil {
		err = m.Forget()
	}
	if err != nil {
		n.putBack(d)
		return "", err
	}
	if locked == nil {
		n.tidy(d)
	}
	return forgotten, nil
}
