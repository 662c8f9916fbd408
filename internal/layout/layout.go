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
	return slices.Contains(dirs, dir) || slices.ContainsFunc(dirs, func(d string) bool { return n.Tree.SameFile(d, dir) })
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

// ErrForeign means that something would have to be replaced that belongs neither to iptables nor to a wrapper.
var ErrForeign = errors.New("not replaced")

// Ours returns nil if what is at a path may be replaced: nothing, a wrapper, or a link to a wrapper or to one of
// iptables' programs, even if that has been removed.
func (n Names) Ours(path string) error {
	c, err := n.Tree.Follow(path)
	switch last := programs.Base(c.End); {
	case len(c.Hops) == 0 && errors.Is(err, unix.ENOENT), c.IsProgram(), n.toWrapper(c):
		return nil
	case len(c.Hops) == 0:
		return err
	case c.End == path && c.Stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return &os.PathError{Op: "replace", Path: path, Err: unix.EISDIR}
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

// ErrNotInstalled means that the commands of a directory are somebody's iptables, in front of which nobody put a
// wrapper.
var ErrNotInstalled = errors.New("no wrapper is installed there")

// claim fails unless the names of a directory may be repointed: one leads to a wrapper or goes through the switch,
// or there are none; nothing else is in the way; and the caller may do it.
func (n Names) claim(d directory) error {
	if n.Self.Secure {
		return self.ErrPrivileged
	}
	present, installed := "", false
	for _, e := range d.names {
		if err := n.Ours(e.path); err != nil {
			return err
		}
		if len(e.chain.Hops) > 0 {
			present = e.path
			installed = installed || e.switched || n.toWrapper(e.chain)
		}
	}
	if present != "" && !installed {
		return fmt.Errorf("%w: %q is iptables' own", ErrNotInstalled, present)
	}
	return nil
}

// Dir returns the directory of the six commands where none is given: that of the running executable if a command or
// iptables-nft is there, else the first standard one of which that holds, else that of the running executable. In
// another tree, only the standard ones count.
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

// Status is where one of the six names leads.
type Status struct {
	Name       string      `json:"name"`
	ResolvesTo string      `json:"resolves_to,omitempty"` // a file, "" if the name is broken
	Mode       detect.Mode `json:"mode,omitempty"`        // of the iptables program that it resolves to
	Wrapper    bool        `json:"wrapper"`               // it resolves to a wrapper
	Switched   bool        `json:"switch"`                // it goes through the switch
	Error      string      `json:"error,omitempty"`       // why it is broken
	Unwritable error       `json:"-"`                     // why its switch, or the link to replace, cannot be replaced
}

// Look returns where the six names in a directory lead. It changes nothing.
func (n Names) Look(dir string) []Status {
	var all []Status
	for _, e := range n.look(dir).names {
		s := Status{Name: programs.Base(e.path), Switched: e.switched}
		if e.err != nil {
			s.Error = e.err.Error()
		} else {
			s.ResolvesTo, s.Mode, s.Wrapper = e.chain.End, e.chain.Mode(), n.toWrapper(e.chain)
			changed := dir
			if !e.switched {
				changed = programs.Dir(e.link)
			}
			s.Unwritable = n.Tree.Access(changed, unix.W_OK)
		}
		all = append(all, s)
	}
	return all
}

// Others returns the paths in the standard directories under which iptables runs without the wrapper: in an image
// with /sbin and /usr/sbin apart, for example, a full path may bypass it. A directory with several names counts
// once.
func (n Names) Others(dir string) (paths []string) {
	dirs := []string{dir}
	for _, d := range programs.StandardDirs() {
		if slices.ContainsFunc(dirs, func(seen string) bool { return n.Tree.SameFile(seen, d) }) {
			continue
		}
		dirs = append(dirs, d)
		for _, e := range n.look(d).names {
			if e.err == nil && e.chain.IsProgram() && !n.toWrapper(e.chain) {
				paths = append(paths, e.path)
			}
		}
	}
	return paths
}
