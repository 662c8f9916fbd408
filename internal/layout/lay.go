// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Lay points the switch of a directory at a wrapper, and then links at the switch. The switch may be among these. What
// points there already stays. The caller holds the lock. It returns a line for each change.
func (n Names) Lay(dir, wrapper string, links []string) (changed []string, err error) {
	sw := programs.Join(dir, Switch)
	changed, err = n.layLink(changed, sw, wrapper)
	for _, link := range links {
		if err != nil {
			break
		}
		if link != sw {
			changed, err = n.layLink(changed, link, sw)
		}
	}
	return changed, err
}

// layLink points a link at a file, and adds a line to the changes, unless it points there already.
func (n Names) layLink(changes []string, link, file string) ([]string, error) {
	content, err := n.Tree.Content(link, file)
	if err != nil {
		return changes, err
	}
	old, _ := n.Tree.Readlink(link)
	if old == content {
		return changes, nil
	}
	err = n.Tree.Point(link, file)
	if err != nil {
		return changes, err
	}
	return append(changes, tree.Printable(link)+" -> "+tree.Printable(content)), nil
}

// adopt points the switch at the wrapper, and brings names into the layout. After each step a name resolves to what it
// did before, or to the wrapper.
func (n Names) adopt(d directory, wanted func(entry) bool) error {
	if err := n.ours(d.sw); err != nil {
		return err
	}
	wrapper, err := n.wrapperFor(d.dir)
	if err != nil {
		return err
	}
	wrapper, err = n.keepName(d, wrapper)
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

// wrapperFor returns the wrapper that the switch of a directory is to point to: the one in it, or the running one.
func (n Names) wrapperFor(dir string) (string, error) {
	own := programs.Join(dir, self.WrapperName)
	c, _ := n.Tree.Follow(own)
	if n.toWrapper(c) && !n.throughLayout(c, dir) {
		return own, nil
	}
	return n.Self.Path()
}

// keepName gives a wrapper another name if the one that it has is to be replaced by a link, and returns the name that
// stays.
func (n Names) keepName(d directory, wrapper string) (string, error) {
	replaced := slices.ContainsFunc(d.names, func(e entry) bool { return n.Tree.SameEntry(e.link, wrapper) })
	if !replaced {
		return wrapper, nil
	}
	own := programs.Join(d.dir, self.WrapperName)
	return own, n.Tree.Link(wrapper, own)
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
		c, _ := n.Tree.Follow(path)
		if n.throughLayout(c, dir) {
			return fmt.Errorf("%q: %w", path, errThrough)
		}
	}
	return nil
}

// tidy removes the temporary links that killed processes have left. The caller holds the lock. A name that resolves
// through another one was not replaced, so its temporary link is still there.
func (n Names) tidy(d directory) {
	links := []string{d.sw.path}
	for _, e := range d.names {
		links = append(links, e.link)
	}
	for _, link := range links {
		left := tree.Temporary(link, "new")
		if n.Tree.IsLink(left) {
			_ = n.Tree.Unlink(left) // it is in nobody's way
		}
	}
}
