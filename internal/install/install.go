// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package install puts the wrapper behind the six commands of iptables in a directory, in the process' own file system or
// in another root.
package install

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// ErrRefused is returned when something would have to be replaced that belongs neither to iptables nor to a wrapper.
// Options.Force replaces it.
var ErrRefused = errors.New("not replaced")

type Options struct {
	Force        bool // also replace what belongs neither to iptables nor to a wrapper
	Alternatives bool // commands managed by alternatives stay so
}

type plan struct {
	dir          string
	wrapper      []byte   // the executable to write, nil if it is there
	capabilities string   // the file capabilities to give it, "" for none
	links        []string // to replace: the switch itself, and what must point to it
	groups       []group  // in which the switch is to be registered, or is
}

// Install makes the six commands in a directory point to the switch, and that to the wrapper, which it copies there if
// necessary. Commands managed by alternatives get the switch registered; in a tree other than the process' own, where no
// program can be run, their links under /etc/alternatives are pointed at it instead.
//
// It returns a line for each thing that it changed. If something is in the way that it does not replace, it changes nothing.
func Install(w links.Wrapper, dir string, o Options) (changed []string, err error) {
	if w.Privileged() {
		return nil, links.ErrPrivileged
	}
	if !w.Own() && dir[0] != '/' {
		dir = "/" + dir
	}
	unlock, err := w.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := newPlan(w, dir, o)
	if err != nil {
		return nil, err
	}
	return p.run(w)
}

func newPlan(w links.Wrapper, dir string, o Options) (p plan, err error) {
	p.dir = dir
	if err := p.addWrapper(w, o.Force); err != nil {
		return p, err
	}
	if o.Alternatives && w.Own() {
		if p.groups, err = findGroups(dir); err != nil {
			return p, err
		}
	}
	sw := programs.Join(dir, links.Switch)
	if target, _ := w.Readlink(sw); target != links.WrapperName {
		p.links = append(p.links, sw)
		err = replaceable(w.Tree, sw, o.Force)
	}
	for _, name := range programs.Names() {
		err = errors.Join(err, p.addName(w, name, o))
	}
	return p, err
}

// addName plans what makes one of the six commands point to the switch.
func (p *plan) addName(w links.Wrapper, name string, o Options) error {
	sw, path := programs.Join(p.dir, links.Switch), programs.Join(p.dir, name)
	link, managed := path, ""
	if o.Alternatives {
		managed = alternative(w.Tree, path)
	}
	if i := slices.IndexFunc(p.groups, func(g group) bool { return g.has(name) }); i >= 0 {
		if p.groups[i].registered() {
			return nil
		}
		if w.IsLink(path) {
			link = "" // the tool replaces it; it replaces no file
		}
	} else if managed != "" && !w.Own() {
		link = managed // no tool can be run there
	}
	if link != "" {
		target, err := w.Content(link, sw)
		if old, _ := w.Readlink(link); err != nil || old == target {
			return err
		}
		p.links = append(p.links, link)
	}
	// A link that is broken, and was made by the tool, is there to be repaired.
	_, broken := w.Stat(path)
	return replaceable(w.Tree, path, o.Force || managed != "" && broken != nil)
}

// run carries out the plan. After every step, each command resolves to what it did before, or to the wrapper.
func (p plan) run(w links.Wrapper) (changed []string, err error) {
	file := programs.Join(p.dir, links.WrapperName)
	if p.wrapper != nil {
		if err := writeWrapper(w.Tree, file, p.wrapper, p.capabilities); err != nil {
			return nil, err
		}
		changed = append(changed, "copied the wrapper to "+file)
	} else if p.capabilities != "" {
		if err := setCapabilities(w.Tree, file, p.capabilities); err != nil {
			return nil, err
		}
	}
	if p.capabilities != "" {
		changed = append(changed, "gave "+file+" the file capabilities of iptables' programs")
	}
	laid, err := w.Lay(p.dir, file, p.links)
	if changed = append(changed, laid...); err != nil {
		return changed, err
	}
	for _, g := range slices.DeleteFunc(p.groups, group.registered) {
		if err := g.register(); err != nil {
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

// replaceable returns nil if what is at a path may be replaced: nothing, a wrapper, or a link to a wrapper or to one of
// iptables' programs. With force, anything but a directory.
func replaceable(t links.Tree, path string, force bool) error {
	switch st, err := t.Lstat(path); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "replace", Path: path, Err: err}
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return &os.PathError{Op: "replace", Path: path, Err: unix.EISDIR}
	case force || t.IsWrapper(path):
		return nil
	}
	c, err := t.Follow(path)
	switch last := programs.Base(c.End); {
	case c.IsProgram():
		return nil
	case links.IsNotExist(err) && len(c.Hops) > 0 && (last == links.WrapperName || last == links.Switch || programs.IsProgram(last)):
		return nil // it pointed to a wrapper or a program that has been removed
	case err != nil:
		return fmt.Errorf("%w: %q is a broken link that this wrapper did not create: %w", ErrRefused, path, err)
	case c.End == path:
		return fmt.Errorf("%w: %q is a file that is not the wrapper", ErrRefused, path)
	default:
		return fmt.Errorf("%w: %q points to %q, which is neither a wrapper nor part of iptables", ErrRefused, path, c.End)
	}
}
