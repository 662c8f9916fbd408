// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Lay makes links in a directory point to its switch, and that to a wrapper, in this order: the switch first, unless it leads
// there. The caller holds the lock. It returns a line for each change.
func (n Names) Lay(dir, wrapper string, links []string) (changed []string, err error) {
	sw := programs.Join(dir, Switch)
	current, broken := n.Tree.Follow(sw)
	if !slices.Contains(links, sw) && (broken != nil || !n.Tree.SameFile(current.End, wrapper)) {
		links = append([]string{sw}, links...)
	}
	for _, link := range links {
		target := sw
		if link == sw {
			target = wrapper
		}
		if err := n.Tree.Point(link, target); err != nil {
			return changed, err
		}
		content, _ := n.Tree.Readlink(link)
		changed = append(changed, link+" -> "+content)
	}
	return changed, nil
}

// adopt brings names into the layout. file is the wrapper's executable, which may be one of the names. After each step a name
// resolves to what it did before, or to the wrapper.
func (n Names) adopt(d directory, names []entry, file string) error {
	if len(names) == 0 {
		return nil
	}
	if len(d.current.Hops) == 1 {
		return &os.PathError{Op: "replace", Path: d.sw, Err: unix.EEXIST} // a user's file, not a link
	}
	file, err := n.nameWrapper(d, names, file)
	if err != nil {
		return err
	}
	var links []string
	if n.passes(d.current, names) {
		links = append(links, d.sw)
	}
	for _, e := range names {
		links = append(links, e.link)
	}
	if err := n.freeWrapper(d.dir); err != nil {
		return err
	}
	_, err = n.Lay(d.dir, file, links)
	return err
}

// freeWrapper sees to it that the wrapper's own name does not go through a switch that is about to move, or through a name.
func (n Names) freeWrapper(dir string) error {
	own := programs.Join(dir, self.WrapperName)
	if !n.Tree.IsLink(own) {
		return nil
	}
	c, err := n.Tree.Follow(own)
	d := n.look(dir)
	if err != nil || !n.toWrapper(c) || !n.throughLayout(c, d) || n.passes(tree.Chain{Hops: []string{c.End}}, d.names) {
		return nil // the last: nameWrapper comes first
	}
	return n.Tree.Point(own, c.End)
}

// throughLayout reports whether a chain goes through the switch or a link of one of the six names.
func (n Names) throughLayout(c tree.Chain, d directory) bool {
	return n.passesSwitch(c, d) || n.passes(c, d.names)
}

// nameWrapper gives the wrapper's file its own name, if a name that it has will be replaced by a link. It returns a path of
// the file that stays.
func (n Names) nameWrapper(d directory, names []entry, file string) (string, error) {
	i := slices.IndexFunc(names, func(e entry) bool { return n.Tree.SameFile(e.link, file) && !n.Tree.IsLink(e.link) })
	if i < 0 {
		return file, nil
	}
	file = names[i].link
	own := programs.Join(d.dir, self.WrapperName)
	c, err := n.Tree.Follow(own)
	switch {
	case len(c.Hops) == 0 && tree.IsNotExist(err):
		return own, n.Tree.Link(file, own)
	case len(c.Hops) == 1 && n.Tree.IsWrapper(own):
		return own, nil
	case err == nil && n.Tree.SameFile(own, file): // a link that leads back to the name
		spare := tree.Temporary(own, "new")
		if err := n.Tree.Unlink(spare); err != nil && !tree.IsNotExist(err) {
			return "", err
		}
		if err := n.Tree.Link(file, spare); err != nil {
			return "", err
		}
		return own, n.Tree.Rename(spare, own)
	default:
		return "", fmt.Errorf("name the wrapper %q: %w", own, unix.EEXIST)
	}
}

var errSingle = errors.New("it is not a multi-call program, and one link must serve all six commands")

// servesAll checks that the switch may point to a program: that it is a multi-call program, and not reached through the
// switch or a name that goes through it.
func (n Names) servesAll(d directory, mode detect.Mode, program string) error {
	if programs.Base(program) != programs.MultiCall(mode) {
		return fmt.Errorf("%q: %w", program, errSingle)
	}
	c, err := n.Tree.Follow(program)
	if err != nil {
		return err
	}
	if len(c.Hops) > 1 && n.throughLayout(c, d) {
		return fmt.Errorf("%q: it is reached through a command of iptables: %w", program, programs.ErrRecursion)
	}
	return nil
}

// tidy removes the temporary links that killed processes have left. The caller holds the lock. A name that resolves through
// another one was not replaced, so its temporary link is still there.
func (n Names) tidy(d directory) {
	links := []string{d.sw}
	for _, e := range d.names {
		links = append(links, e.path, e.link)
	}
	for _, link := range links {
		if left := tree.Temporary(link, "new"); n.Tree.IsLink(left) {
			_ = n.Tree.Unlink(left) // it is in nobody's way
		}
	}
}
