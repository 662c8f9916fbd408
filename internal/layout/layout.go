// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package layout decides where the six names of iptables lead.
//
// In the layout that install makes, the names point to one link beside them, the switch, and that points to the
// wrapper:
//
//	iptables         -> iptables-current
//	iptables-restore -> iptables-current
//	...
//	iptables-current -> iptables-wrapper
//
// A decision replaces the switch by a link to a multi-call program with one rename(2), so all six names change at
// the same instant, and a kill at any instant leaves them all old or all new.
package layout

import (
	"slices"

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
	names   []entry    // all six
}

type entry struct {
	path     string
	chain    tree.Chain
	err      error  // why it is broken
	link     string // the link in this directory to replace, or the file itself, if the name is not in the layout
	switched bool   // it goes through the switch
	athome   bool   // it belongs to this directory, and not to another one to which it leads
}

func (n Names) look(dir string) directory {
	d := directory{dir: dir, sw: programs.Join(dir, Switch)}
	d.current, _ = n.Tree.Follow(d.sw)
	for _, name := range programs.Names() {
		e := entry{path: programs.Join(dir, name)}
		e.chain, e.err = n.Tree.Follow(e.path)
		e.switched = slices.ContainsFunc(e.chain.Hops, func(hop string) bool { return n.Tree.SameEntry(hop, d.sw) })
		e.link = n.linkIn(dir, e.chain)
		e.athome = n.Tree.SameFile(n.home(e.chain), dir)
		d.names = append(d.names, e)
	}
	return d
}

// AlternativesDir holds a symlink for each command that update-alternatives(1) manages.
const AlternativesDir = "/etc/alternatives"

// home returns the directory of the commands that a chain belongs to: that of its first link, or a standard
// directory in which a later one bears the command's name.
func (n Names) home(c tree.Chain) string {
	home := programs.Dir(c.End) // of a chain without hops
	for i, hop := range c.Hops {
		dir := programs.Dir(hop)
		switch {
		case i == 0:
			home = dir
		case programs.Base(hop) == programs.Base(c.Hops[0]) && n.isOneOf(dir, programs.StandardDirs()...):
			home = dir
		}
	}
	return home
}

// linkIn returns the last link of a command's chain that is there for that command of this directory, which is the
// one to replace if the command is to lead elsewhere. It bears the command's name and is in the directory, or in
// /etc/alternatives if a standard directory leads there. From the first other link on, the chain is somebody
// else's: a link under the wrapper's own name, or a command of another directory.
func (n Names) linkIn(dir string, c tree.Chain) (link string) {
	link = c.End // of a chain without hops
	for i, hop := range c.Hops {
		at := programs.Dir(hop)
		registered := n.isOneOf(at, AlternativesDir) && n.isOneOf(dir, programs.StandardDirs()...)
		if i > 0 && (programs.Base(hop) != programs.Base(link) || !registered && !n.isOneOf(at, dir)) {
			break
		}
		link = hop
	}
	return link
}

func (n Names) isOneOf(dir string, dirs ...string) bool {
	same := func(d string) bool { return n.Tree.SameFile(d, dir) }
	return slices.Contains(dirs, dir) || slices.ContainsFunc(dirs, same)
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

// used reports whether a name goes through the switch.
func (d directory) used() bool {
	return slices.ContainsFunc(d.names, func(e entry) bool { return e.switched })
}

func (n Names) toWrapper(c tree.Chain) bool { return n.Self.IsWrapper(n.Tree, c) }
