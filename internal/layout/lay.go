// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Lay makes links in a directory point to its switch, and that to a wrapper, which it does first. What points there already stays.
// The caller holds the lock. It returns a line for each change.
func (n Names) Lay(dir, wrapper string, links []string) (changed []string, err error) {
	sw := programs.Join(dir, Switch)
	for _, link := range append([]string{sw}, links...) {
		target := sw
		if link == sw {
			target = wrapper
		}
		content, err := n.Tree.Content(link, target)
		if old, _ := n.Tree.Readlink(link); err == nil && old == content {
			continue
		}
		if err == nil {
			err = n.Tree.Replace(link, content)
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, link+" -> "+content)
	}
	return changed, nil
}

// adopt brings names into the layout. After each step a name resolves to what it did before, or to the wrapper.
func (n Names) adopt(d directory, wanted func(entry) bool) error {
	if err := n.Ours(d.sw); err != nil {
		return err
	}
	wrapper, err := n.wrapper(d)
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

// wrapper returns the wrapper that the switch of a directory is to point to: the one in it, or the running one. That gets the
// wrapper's name if the name that it has will be replaced by a link.
func (n Names) wrapper(d directory) (string, error) {
	own := programs.Join(d.dir, self.WrapperName)
	if c, _ := n.Tree.Follow(own); n.toWrapper(c) && !n.throughLayout(c, d.dir) {
		return own, nil
	}
	file, err := n.Self.Path()
	if err == nil && slices.ContainsFunc(d.names, func(e entry) bool { return n.Tree.SameEntry(e.link, file) }) {
		return own, n.Tree.Link(file, own)
	}
	return file, err
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

// servesAll checks that the switch may point to a program: that it is a multi-call program, and that neither it nor the wrapper
// under its own name is reached through what would then lead to the program.
func (n Names) servesAll(dir string, mode detect.Mode, program string) error {
	if programs.Base(program) != programs.MultiCall(mode) {
		return fmt.Errorf("%q: %w", program, errSingle)
	}
	for _, path := range []string{program, programs.Join(dir, self.WrapperName)} {
		if c, _ := n.Tree.Follow(path); n.throughLayout(c, dir) {
			return fmt.Errorf("%q: %w", path, errThrough)
		}
	}
	return nil
}

// tidy removes the temporary links that killed processes have left. The caller holds the lock. A name that resolves through
// another one was not replaced, so its temporary link is still there.
func (n Names) tidy(d directory) {
	for _, e := range append(d.names, entry{link: d.sw}) {
		if left := tree.Temporary(e.link, "new"); n.Tree.IsLink(left) {
			_ = n.Tree.Unlink(left) // it is in nobody's way
		}
	}
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

// Others returns the paths in the standard directories under which iptables runs without the wrapper: in an image with /sbin
// and /usr/sbin apart, for example, a full path may bypass it. A directory with several names counts once.
func (n Names) Others(dir string) (paths []string) {
	dirs := []string{dir}
	for _, d := range programs.StandardDirs() {
		if slices.ContainsFunc(dirs, func(seen string) bool { return n.Tree.SameFile(seen, d) }) {
			continue
		}
		dirs = append(dirs, d)
		for _, name := range programs.Names() {
			path := programs.Join(d, name)
			if c, err := n.Tree.Follow(path); err == nil && c.IsProgram() && !n.Tree.IsWrapper(c.End) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
