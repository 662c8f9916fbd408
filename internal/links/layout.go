// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Switch is the name of the link that a decision replaces.
const Switch = "iptables-current"

// layout describes how the six names in one directory resolve.
type layout struct {
	dir     string
	sw      string  // the switch
	current Chain   // from the switch on
	broken  error   // why the switch is broken; nil if it points to a file
	names   []entry // all six
}

type entry struct {
	path     string
	chain    Chain
	err      error  // why it is broken
	link     string // the link to replace, or the file itself, if the name is not in the layout
	switched bool   // it goes through the switch
}

func (w Wrapper) layout(dir string) layout {
	l := layout{dir: dir, sw: programs.Join(dir, Switch)}
	l.current, l.broken = w.Follow(l.sw)
	for _, name := range programs.Names() {
		e := entry{path: programs.Join(dir, name)}
		e.chain, e.err = w.Follow(e.path)
		e.switched = w.throughSwitch(e.chain, l)
		if e.link = e.path; len(e.chain.Hops) > 0 {
			e.link = e.chain.Hops[w.ownLink(e.chain)]
		}
		l.names = append(l.names, e)
	}
	return l
}

// sameEntry reports whether two paths are known to name the same entry of the same directory.
func (t Tree) sameEntry(a, b string) bool {
	return programs.Base(a) == programs.Base(b) && t.SameFile(programs.Dir(a), programs.Dir(b))
}

// throughSwitch reports whether a chain goes through the switch.
func (w Wrapper) throughSwitch(c Chain, l layout) bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool { return w.sameEntry(hop, l.sw) })
}

func (l layout) used() bool {
	return slices.ContainsFunc(l.names, func(e entry) bool { return e.switched })
}

// outside returns the names that are not in the layout, as far as they are wanted.
func (l layout) outside(wanted func(entry) bool) []entry {
	return slices.DeleteFunc(slices.Clone(l.names), func(e entry) bool { return e.switched || !wanted(e) })
}

// toWrapper reports whether a chain ends at this wrapper.
func (w Wrapper) toWrapper(c Chain, err error) bool { return err == nil && w.isSelf(c.End, c.Stat) }

// adopt brings names into the layout. file is the wrapper's executable, which may be one of the names.
//
// Unless the names are to join others at a program, the switch is pointed at the wrapper first, so that after each step a
// name resolves to what it did before, or to the wrapper.
func (w Wrapper) adopt(l layout, names []entry, file string, join bool) error {
	if len(names) == 0 {
		return nil
	}
	if len(l.current.Hops) == 1 {
		return &os.PathError{Op: "replace", Path: l.sw, Err: unix.EEXIST} // a user's file, not a link
	}
	file, err := w.keepFile(l, names, file)
	if err != nil {
		return err
	}
	if !join && (!w.toWrapper(l.current, l.broken) || w.passes(l.current, names)) {
		if err := w.point(l.sw, file); err != nil {
			return err
		}
	}
	// The wrapper's own name must not go through a name that will point to a program.
	own := programs.Join(l.dir, WrapperName)
	if c, err := w.Follow(own); err == nil && len(c.Hops) > 1 && w.passes(c, names) {
		if err := w.point(own, file); err != nil {
			return err
		}
	}
	for _, e := range names {
		if err := w.point(e.link, l.sw); err != nil {
			return err
		}
	}
	return nil
}

// point makes a link point to a file.
func (w Wrapper) point(link, file string) error {
	content, err := w.Content(link, file)
	if err != nil {
		return err
	}
	return w.Replace(link, content)
}

// passes reports whether a chain goes through a link of one of the names.
func (w Wrapper) passes(c Chain, names []entry) bool {
	return slices.ContainsFunc(c.Hops, func(hop string) bool {
		return slices.ContainsFunc(names, func(e entry) bool { return w.sameEntry(hop, e.link) })
	})
}

// throughLayout reports whether a chain goes through the switch or a link of one of the six names.
func (w Wrapper) throughLayout(c Chain, l layout) bool {
	return w.throughSwitch(c, l) || w.passes(c, l.names)
}

// keepFile gives the wrapper's file its own name, if a name that it has will be replaced by a link. It returns a path of
// the file that stays.
func (w Wrapper) keepFile(l layout, names []entry, file string) (string, error) {
	i := slices.IndexFunc(names, func(e entry) bool { return w.SameFile(e.link, file) && !w.IsLink(e.link) })
	if i < 0 {
		return file, nil
	}
	file = names[i].link
	own := programs.Join(l.dir, WrapperName)
	c, err := w.Follow(own)
	switch {
	case len(c.Hops) == 0 && IsNotExist(err):
		return own, w.Link(file, own)
	case len(c.Hops) == 1 && w.IsWrapper(own):
		return own, nil
	case err == nil && w.SameFile(own, file): // a link that leads back to the name
		spare := Temporary(own, "new")
		if err := w.Unlink(spare); err != nil && !IsNotExist(err) {
			return "", err
		}
		if err := w.Link(file, spare); err != nil {
			return "", err
		}
		return own, w.Rename(spare, own)
	default:
		return "", fmt.Errorf("keep the wrapper as %q: %w", own, unix.EEXIST)
	}
}

var errSingle = errors.New("it is not a multi-call program, and one link must serve all six commands")

// servesAll checks that the switch may point to a program: that it is a multi-call program, and not reached through the
// switch or a name that goes through it.
func (w Wrapper) servesAll(l layout, mode detect.Mode, program string) error {
	if programs.Base(program) != programs.MultiCall(mode) {
		return fmt.Errorf("%q: %w", program, errSingle)
	}
	c, err := w.Follow(program)
	if err != nil {
		return err
	}
	if len(c.Hops) > 1 && w.throughLayout(c, l) {
		return fmt.Errorf("%q: it is reached through a command of iptables: %w", program, programs.ErrRecursion)
	}
	return nil
}

// Status is where one of the six names leads.
type Status struct {
	Name       string      `json:"name"`
	ResolvesTo string      `json:"resolves_to,omitempty"` // a file, "" if the name is broken
	Mode       detect.Mode `json:"mode,omitempty"`        // of the iptables program that it resolves to
	Wrapper    bool        `json:"wrapper"`               // it resolves to a wrapper
	Switched   bool        `json:"switch"`                // it goes through the switch
	Error      string      `json:"error,omitempty"`       // why it is broken
	Fixed      error       `json:"-"`                     // why its switch, or the link to replace, cannot be replaced
}

// Look returns where the six names in a directory lead. It changes nothing.
func (w Wrapper) Look(dir string) []Status {
	l := w.layout(dir)
	var all []Status
	for _, e := range l.names {
		s := Status{Name: programs.Base(e.path), Switched: e.switched}
		if e.err != nil {
			s.Error = e.err.Error()
		} else {
			s.ResolvesTo, s.Mode, s.Wrapper = e.chain.End, e.chain.Mode(), w.isWrapperEnd(e.chain)
			changed := dir
			if !e.switched {
				changed = programs.Dir(e.link)
			}
			s.Fixed = w.writable(changed)
		}
		all = append(all, s)
	}
	return all
}

// tidy removes the temporary links that killed processes have left. The caller holds the lock. A name that resolves through
// another one was not replaced, so its temporary link is still there.
func (w Wrapper) tidy(l layout) {
	links := []string{l.sw}
	for _, e := range l.names {
		links = append(links, e.path, e.link)
	}
	for _, link := range links {
		if left := Temporary(link, "new"); w.IsLink(left) {
			_ = w.Unlink(left) // it is in nobody's way
		}
	}
}
