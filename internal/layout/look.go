// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

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
