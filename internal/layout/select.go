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
		// If other steps come before the switch is moved, it leads to the wrapper for their duration, so that no name leads to
		// one backend while another name, or the memory, says the other.
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

// putBack points a switch that was in use where it led before something failed.
func (n Names) putBack(d directory) {
	if d.used() && len(d.current.Hops) > 1 && !n.toWrapper(d.current) {
		_ = n.Tree.Point(d.sw, d.current.Hops[1])
	}
}

// obeys reports whether the names in a directory run a backend once the container remembers it: they lead to a wrapper, or run it
// already.
func (n Names) obeys(dir string, mode detect.Mode) bool {
	return !slices.ContainsFunc(n.look(dir).names, func(e entry) bool {
		return e.err != nil || !n.toWrapper(e.chain) && e.chain.Mode() != mode
	})
}

// remember sets the memory. That must succeed if nothing else makes the names run the backend, or if the old memory says otherwise.
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

// Reset makes the six names in a directory lead to a wrapper again and removes the container's memory, whose path it returns.
// Names that lead to a wrapper stay as they are. It fails where the names are somebody else's, see ErrNotInstalled and
// ErrForeign, and changes nothing then.
func (n Names) Reset(dir string) (forgotten string, err error) {
	if n.Self.Secure {
		return "", self.ErrPrivileged
	}
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
		if err = locked; err == nil {
			err = n.adopt(d, func(e entry) bool { return !n.toWrapper(e.chain) })
		}
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
