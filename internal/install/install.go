// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package install puts the wrapper behind the six commands of iptables in a directory, in the process' own file
// system or in another root.
package install

import (
	"errors"
	"fmt"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// ErrExposed is returned when other users could replace the wrapper, or a directory on the path to it. Options.Force
// installs it all the same.
var ErrExposed = errors.New("not installed where another user could replace the wrapper")

// Options are what install may be told.
type Options struct {
	Force        bool // also replace what belongs neither to iptables nor to a wrapper, in any directory
	Alternatives bool // commands managed by alternatives stay so
}

// plan is what install is going to do.
type plan struct {
	dir          string
	wrapper      []byte   // the executable to write, nil if it is there
	capabilities string   // the file capabilities to give that, "" for none
	links        []string // to replace: the switch itself, and what must point to it
	groups       []group  // in which the switch is to be registered, or is
}

// Install makes the six commands in a directory point to the switch, and that to the wrapper, which it copies there
// if necessary. Commands managed by alternatives get the switch registered; in a tree other than the process' own,
// where no program can be run, their links under /etc/alternatives are pointed at it instead.
//
// It returns a line for each thing that it changed. If something is in the way that it does not replace, it changes
// nothing.
func Install(n layout.Names, dir string, o Options) (changed []string, err error) {
	if n.Self.Secure {
		return nil, self.ErrPrivileged
	}
	if !n.Tree.Own() && dir[0] != '/' {
		dir = "/" + dir
	}
	exposed := n.Tree.Exposed(dir)
	if exposed != "" && !o.Force {
		return nil, fmt.Errorf("%w: users other than root can change %q", ErrExposed, exposed)
	}
	n, unpin, err := n.Pin(dir)
	if err != nil {
		return nil, err
	}
	defer unpin()
	unlock, err := n.Tree.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := makePlan(n, dir, o)
	if err != nil {
		return nil, err
	}
	return p.run(n)
}

// makePlan finds out what is to be done, and fails if something is in the way that is not to be replaced. It changes
// nothing.
func makePlan(n layout.Names, dir string, o Options) (p plan, err error) {
	p.dir = dir
	err = p.addWrapper(n, o.Force)
	if err != nil {
		return p, err
	}
	if o.Alternatives && n.Tree.Own() {
		p.groups, err = findGroups(dir)
		if err != nil {
			return p, err
		}
	}
	sw := programs.Join(dir, layout.Switch)
	target, _ := n.Tree.Readlink(sw)
	if target != self.WrapperName {
		p.links = append(p.links, sw)
		err = replaceable(n, sw, o.Force)
	}
	for _, name := range programs.Names() {
		err = errors.Join(err, p.addName(n, name, o))
	}
	return p, err
}

// addName plans what makes one of the six commands point to the switch.
func (p *plan) addName(n layout.Names, name string, o Options) error {
	path := programs.Join(p.dir, name)
	managed := alternative(n.Tree, path)
	if !o.Alternatives || !programs.IsName(programs.Base(managed)) {
		managed = ""
	}
	i := slices.IndexFunc(p.groups, func(g group) bool { return g.has(name) })
	grouped := i >= 0
	switch {
	case grouped && p.groups[i].registered():
		return nil
	case grouped && n.Tree.IsLink(path):
		// The tool replaces it. It replaces no file.
	case managed != "" && !n.Tree.Own():
		// No tool can be run there.
		err := replaceable(n, path, o.Force || broken(n.Tree, path))
		if err != nil {
			return err
		}
		return p.addManaged(n, managed, o.Force)
	default:
		leads, err := p.addLink(n, path)
		if err != nil || leads {
			return err
		}
	}
	repaired := managed != "" && broken(n.Tree, path)
	return replaceable(n, path, o.Force || repaired)
}

// broken reports that a path leads to nothing. A link that is broken, and that the tool of alternatives made, is there
// to be repaired.
func broken(t tree.Tree, path string) bool {
	_, err := t.Stat(path)
	return err != nil
}

// addManaged plans to point a link in /etc/alternatives to the switch. What may be replaced there is found out about
// that link itself: the command that led to it may lead elsewhere by now.
func (p *plan) addManaged(n layout.Names, link string, force bool) error {
	leads, err := p.addLink(n, link)
	if err != nil || leads {
		return err
	}
	exposed := n.Tree.Exposed(layout.AlternativesDir)
	if exposed != "" && !force {
		return fmt.Errorf("%w: users other than root can change %q", ErrExposed, exposed)
	}
	repaired := n.Tree.IsLink(link) && broken(n.Tree, link)
	return replaceable(n, link, force || repaired)
}

// addLink plans to point a link to the switch, unless it leads there.
func (p *plan) addLink(n layout.Names, link string) (leads bool, err error) {
	target, err := n.Tree.Content(link, programs.Join(p.dir, layout.Switch))
	if err != nil {
		return false, err
	}
	now, _ := n.Tree.Readlink(link)
	if now == target {
		return true, nil
	}
	p.links = append(p.links, link)
	return false, nil
}

// run carries out the plan. After every step, each command resolves to what it did before, or to the wrapper.
func (p plan) run(n layout.Names) (changed []string, err error) {
	file := programs.Join(p.dir, self.WrapperName)
	if p.wrapper != nil {
		err = writeWrapper(n.Tree, file, p.wrapper, p.capabilities)
		if err != nil {
			return nil, err
		}
		changed = append(changed, "copied the wrapper to "+tree.Printable(file))
	}
	if p.capabilities != "" {
		changed = append(changed, "gave "+tree.Printable(file)+" the file capabilities of iptables' programs")
	}
	laid, err := n.Lay(p.dir, file, p.links)
	changed = append(changed, laid...)
	if err != nil {
		return changed, err
	}
	for _, g := range slices.DeleteFunc(p.groups, group.registered) {
		err = g.register()
		if err != nil {
			return changed, err
		}
		for _, m := range g.members {
			if m.ours {
				changed = append(changed, m.link+" -> "+g.program()+", by "+g.tool)
			}
		}
	}
	return changed, nil
}

// replaceable returns nil if what is at a path may be replaced: what is ours or, with force, anything but a directory.
func replaceable(n layout.Names, path string, force bool) error {
	err := n.Ours(path)
	if force && errors.Is(err, layout.ErrForeign) {
		return nil
	}
	return err
}
