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

// directory is how the six names in one directory, and the switch there, resolve at one moment.
type directory struct {
	dir   string
	sw    entry   // the switch
	names []entry // all six
}

// entry is how the switch or one of the six names resolves. The second group of fields is about the names alone.
type entry struct {
	path    string
	chain   tree.Chain
	err     error // why it is broken, or that it does not exist
	wrapper bool  // it leads to a wrapper

	link     string // what to replace if the name is to lead elsewhere, see linkToReplace
	switched bool   // it goes through the switch
	belongs  bool   // to this directory, and not to another one to which it leads
}

// look follows the six names of a directory, and the switch.
func (n Names) look(dir string) directory {
	d := directory{dir: dir, sw: n.follow(programs.Join(dir, Switch))}
	isSwitch := func(hop string) bool { return n.Tree.SameEntry(hop, d.sw.path) }
	for _, name := range programs.Names() {
		e := n.follow(programs.Join(dir, name))
		e.link = n.linkToReplace(dir, e.path, e.chain)
		e.switched = slices.ContainsFunc(e.chain.Hops, isSwitch)
		e.belongs = n.Tree.SameFile(n.commandDir(e.chain), dir)
		d.names = append(d.names, e)
	}
	return d
}

func (n Names) follow(path string) entry {
	c, err := n.Tree.Follow(path)
	return entry{path: path, chain: c, err: err, wrapper: n.toWrapper(c)}
}

// exists reports whether there is something at the path, even if only a broken link.
func (e entry) exists() bool { return e.chain.Found() }

// obeys reports whether the name runs a backend once the container remembers it: it leads to a wrapper, or runs that
// backend already.
func (e entry) obeys(mode detect.Mode) bool {
	if e.err != nil {
		return false
	}
	return e.wrapper || e.chain.Mode() == mode
}

// AlternativesDir holds a symlink for each command that update-alternatives(1) manages.
const AlternativesDir = "/etc/alternatives"

// commandDir returns the directory of the commands that a command's chain belongs to: that of the command, or the last
// standard directory on the way in which a link bears the command's name.
func (n Names) commandDir(c tree.Chain) string {
	if !c.Found() {
		return programs.Dir(c.End)
	}
	command := c.Hops[0]
	dir := programs.Dir(command)
	for _, hop := range c.Hops[1:] {
		sameName := programs.Base(hop) == programs.Base(command)
		if sameName && n.isOneOf(programs.Dir(hop), programs.StandardDirs()...) {
			dir = programs.Dir(hop)
		}
	}
	return dir
}

// linkToReplace returns the last link of a command's chain that is there for that command of this directory, which is
// the one to replace if the command is to lead elsewhere: the command itself or, in a standard directory that leads
// there, the link of the same name in /etc/alternatives. What comes after that is somebody else's: a link under the
// wrapper's own name, or a command of another directory.
//
// The path that it returns is in a directory that Pin has opened. The hops of a chain are other paths, and whoever
// owns a directory on one of them could make it lead elsewhere. For the same reason, no link in /etc/alternatives is
// replaced for a directory by whose path somebody could do so.
func (n Names) linkToReplace(dir, path string, c tree.Chain) (link string) {
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

// allToWrapper reports whether all six names lead to a wrapper.
func (d directory) allToWrapper() bool {
	return !slices.ContainsFunc(d.names, func(e entry) bool { return !e.wrapper })
}

func (n Names) toWrapper(c tree.Chain) bool { return n.Self.IsWrapper(n.Tree, c) }
