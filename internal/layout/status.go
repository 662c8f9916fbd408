// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

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
	signs := append(programs.Names(), programs.Files(detect.NFT, "iptables")...)
	for _, dir := range dirs {
		for _, name := range signs {
			_, err := n.Tree.Lstat(programs.Join(dir, name))
			if err == nil {
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
		all = append(all, n.status(dir, e))
	}
	return all
}

func (n Names) status(dir string, e entry) Status {
	s := Status{Name: programs.Base(e.path), Switched: e.switched}
	if e.err != nil {
		s.Error = e.err.Error()
		return s
	}
	s.ResolvesTo = e.chain.End
	s.Mode = e.chain.Mode()
	s.Wrapper = e.wrapper
	replaced := programs.Join(dir, Switch)
	if !e.switched {
		replaced = e.link
	}
	s.Unwritable = n.Tree.Access(programs.Dir(replaced), unix.W_OK)
	return s
}

// AndStandardDirs returns a directory and the standard ones, each of them once: several paths may lead to one.
func (n Names) AndStandardDirs(dir string) []string {
	dirs := []string{dir}
	for _, d := range programs.StandardDirs() {
		known := slices.ContainsFunc(dirs, func(seen string) bool { return n.Tree.SameFile(seen, d) })
		if !known {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// Others returns the paths in the other standard directories under which iptables runs without the wrapper: in an image
// with /sbin and /usr/sbin apart, for example, a full path may bypass it.
func (n Names) Others(dir string) (paths []string) {
	for _, d := range n.AndStandardDirs(dir)[1:] {
		for _, e := range n.look(d).names {
			if e.err == nil && e.chain.IsProgram() && !e.wrapper {
				paths = append(paths, e.path)
			}
		}
	}
	return paths
}
