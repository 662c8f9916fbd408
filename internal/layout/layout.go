// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package layout decides where the six names of iptables lead.
//
// In the layout that install makes, the names point to one link beside them, the switch, and that points to the wrapper:
//
//	iptables         -> iptables-current
//	iptables-restore -> iptables-current
//	...
//	iptables-current -> iptables-wrapper
//
// A decision replaces the switch by a link to a multi-call program with one rename(2), so all six names change at the same
// instant, and a kill at any instant leaves them all old or all new.
package layout

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Switch is the name of the link that a decision replaces.
const Switch = "iptables-current"

// Names are the six names as the running wrapper finds and changes them.
type Names struct {
	Tree      tree.Tree
	Self      self.Process
	Container memory.Container
}

// Memory reads what the container remembers.
func (n Names) Memory() memory.Memory { return memory.Read(n.Tree, n.Self, n.Container) }

// Find returns the program that a name in a directory runs in one backend.
func (n Names) Find(dir string, mode detect.Mode, name string) (string, error) {
	return n.Self.Find(n.Tree, programs.Join(dir, name), mode, name)
}

// directory is how the six names in one directory resolve.
type directory struct {
	dir     string
	sw      string     // the switch
	current tree.Chain // from the switch on
	broken  error      // why the switch is broken; nil if it points to a file
	names   []entry    // all six
}

type entry struct {
	path     string
	chain    tree.Chain
	err      error  // why it is broken
	link     string // the link to replace, or the file itself, if the name is not in the layout
	switched bool   // it goes through the switch
}

func (n Names) look(dir string) directory {
	d := directory{dir: dir, sw: programs.Join(dir, Switch)}
	d.current, d.broken = n.Tree.Follow(d.sw)
	for _, name := range programs.Names() {
		e := entry{path: programs.Join(dir, name)}
		e.chain, e.err = n.Tree.Follow(e.path)
		e.switched = n.passesSwitch(e.chain, d)
		if e.link = e.path; len(e.chain.Hops) > 0 {
			e.link = e.chain.Hops[n.ownLink(e.chain)]
		}
		d.names = append(d.names, e)
	}
	return d
}

// AlternativesDir holds a symlink for each command that update-alternatives(1) manages.
const AlternativesDir = "/etc/alternatives"

// ownLink returns the index of the last link of a command's chain that is there for that command: it bears the command's
// name, in the directory of the chain's first hop, in a standard one, or in /etc/alternatives if a standard one leads there.
// It is the link to replace if the command is to lead elsewhere. Others, such as a link under the wrapper's own name, are
// there for something else.
func (n Names) ownLink(c tree.Chain) int {
	own := 0
	for i, hop := range c.Hops {
		dir := programs.Dir(hop)
		switch {
		case programs.Base(hop) != programs.Base(c.Hops[0]):
		case n.isOneOf(dir, programs.StandardDirs()...), n.isOneOf(dir, programs.Dir(c.Hops[0])),
			n.isOneOf(dir, AlternativesDir) && n.isOneOf(programs.Dir(c.Hops[i-1]), programs.StandardDirs()...):
			own = i
		}
	}
	return own
}

func (n Names) isOneOf(dir string, dirs ...string) bool {
	return slices.Contains(dirs, dir) || slices.ContainsFunc(dirs, func(d string) bool { return n.Tree.SameFile(d, dir) })
}

// namesDir returns the directory of the commands that the chain's first hop belongs to: that of its own link, or of the
// link that points to it in /etc/alternatives.
func (n Names) namesDir(c tree.Chain) string {
	i := n.ownLink(c)
	if i > 0 && n.isOneOf(programs.Dir(c.Hops[i]), AlternativesDir) {
		i--
	}
	return programs.Dir(c.Hops[i])
}

// lastSwitch returns the last switch that a chain passes, "" if it passes none.
func lastSwitch(c tree.Chain) string {
	for _, hop := range slices.Backward(c.Hops) {
		if programs.Base(hop) == Switch {
			return hop
		}
	}
	return ""
}

func (n Names) passesSwitch(c tree.Chain, d directory) bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool { return n.Tree.SameEntry(hop, d.sw) })
}

// passes reports whether a chain goes through a link of one of the names.
func (n Names) passes(c tree.Chain, names []entry) bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool {
		return slices.ContainsFunc(names, func(e entry) bool { return n.Tree.SameEntry(hop, e.link) })
	})
}

// used reports whether a name goes through the switch.
func (d directory) used() bool {
	return slices.ContainsFunc(d.names, func(e entry) bool { return e.switched })
}

// outside returns the names that do not go through the switch, as far as they are wanted.
func (d directory) outside(wanted func(entry) bool) []entry {
	return slices.DeleteFunc(slices.Clone(d.names), func(e entry) bool { return e.switched || !wanted(e) })
}

// toSelf reports whether a chain ends at the running wrapper.
func (n Names) toSelf(c tree.Chain, err error) bool {
	return err == nil && n.Self.Is(n.Tree, c.End, c.Stat)
}

func (n Names) toWrapper(c tree.Chain) bool { return n.Self.IsWrapper(n.Tree, c) }

// ErrForeign means that something would have to be replaced that belongs neither to iptables nor to a wrapper.
var ErrForeign = errors.New("not replaced")

// Ours returns nil if what is at a path may be replaced: nothing, a wrapper, or a link to a wrapper or to one of iptables'
// programs, even if that has been removed.
func (n Names) Ours(path string) error {
	switch st, err := n.Tree.Lstat(path); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "replace", Path: path, Err: err}
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return &os.PathError{Op: "replace", Path: path, Err: unix.EISDIR}
	}
	c, err := n.Tree.Follow(path)
	switch last := programs.Base(c.End); {
	case c.IsProgram(), err == nil && n.toWrapper(c):
		return nil
	case tree.IsNotExist(err) && (last == self.WrapperName || last == Switch || lastSwitch(c) != "" || programs.IsProgram(last)):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %q is a broken link that no wrapper made: %w", ErrForeign, path, err)
	case c.End == path:
		return fmt.Errorf("%w: %q is a file that is neither a wrapper nor a link to iptables", ErrForeign, path)
	default:
		return fmt.Errorf("%w: %q points to %q, which is neither a wrapper nor part of iptables", ErrForeign, path, c.End)
	}
}

// ErrNotInstalled means that the commands of a directory are somebody's iptables, in front of which nobody put a wrapper.
var ErrNotInstalled = errors.New("no wrapper is installed there")

// claim fails unless the names of a directory may be repointed: one leads to a wrapper or goes through the switch, or there
// are none; and nothing else is in the way.
func (n Names) claim(d directory) error {
	present, installed := "", false
	for _, e := range d.names {
		if err := n.Ours(e.path); err != nil {
			return err
		}
		if len(e.chain.Hops) > 0 {
			present = e.path
			installed = installed || e.switched || e.err == nil && n.toWrapper(e.chain)
		}
	}
	if present != "" && !installed {
		return fmt.Errorf("%w: %q is iptables' own", ErrNotInstalled, present)
	}
	return nil
}
