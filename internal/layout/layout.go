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

// Pin returns the names in a tree in which the directory stays the one that it leads to now, and /etc/alternatives too
// if there is one, see tree.Pin. These are the directories in which links are replaced.
func (n Names) Pin(dir string) (pinned Names, unpin func(), err error) {
	one, unpinOne, err := n.Tree.Pin(dir)
	if err != nil {
		return n, nil, err
	}
	n.Tree = one
	both, unpinOther, err := one.Pin(AlternativesDir)
	if err != nil {
		return n, unpinOne, nil
	}
	n.Tree = both
	return n, func() {
		unpinOther()
		unpinOne()
	}, nil
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
	atHome   bool   // it belongs to this directory, and not to another one to which it leads
}

func (n Names) look(dir string) directory {
	d := directory{dir: dir, sw: programs.Join(dir, Switch)}
	d.current, _ = n.Tree.Follow(d.sw)
	for _, name := range programs.Names() {
		e := entry{path: programs.Join(dir, name)}
		e.chain, e.err = n.Tree.Follow(e.path)
		e.switched = slices.ContainsFunc(e.chain.Hops, func(hop string) bool { return n.Tree.SameEntry(hop, d.sw) })
		e.link = n.linkIn(dir, e.path, e.chain)
		e.atHome = n.Tree.SameFile(n.home(e.chain), dir)
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
// one to replace if the command is to lead elsewhere: the command itself or, in a standard directory that leads
// there, the link of the same name in /etc/alternatives. What comes after that is somebody else's: a link under the
// wrapper's own name, or a command of another directory.
//
// The path that it returns is in a directory that Pin has opened. The hops of a chain are other paths, and whoever
// owns a directory on one of them could make it lead elsewhere. For the same reason, no link in /etc/alternatives is
// replaced for a directory by whose path somebody could do so.
func (n Names) linkIn(dir, path string, c tree.Chain) (link string) {
	if len(c.Hops) < 2 {
		return path
	}
	next := c.Hops[1]
	name := programs.Base(path)
	registered := programs.Base(next) == name && n.isOneOf(programs.Dir(next), AlternativesDir)
	if registered && n.isOneOf(dir, programs.StandardDirs()...) && n.Tree.Unpinned().Exposed(dir) == "" {
		return programs.Join(AlternativesDir, name)
	}
	return path
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
