// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package look looks where the six commands lead, and what a call of one runs, for the command line. A wrapped call
// does not link it.
package look

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Command is where one of the six commands leads.
type Command struct {
	Name string `json:"name"`
	Path string `json:"path"`

	ResolvesTo string         `json:"resolves_to,omitempty"` // a file, "" if the command is broken or missing
	Backend    detect.Backend `json:"backend,omitempty"`     // by the name of that file, "" if unknown
	Wrapper    bool           `json:"wrapper"`               // that file is the wrapper, this copy or another one
	Switch     string         `json:"switch,omitempty"`      // the directory of the switch that it leads through
	Missing    bool           `json:"-"`                     // nothing has the path
	Err        error          `json:"-"`                     // why the command is broken or missing
}

// In returns where the six commands in a directory lead.
func In(d *link.Dir) (all []Command) {
	if d.Step != nil {
		d.Step("look", "")
	}
	for _, name := range iptables.Commands() {
		all = append(all, At(d.Join(name)))
	}
	return all
}

// Bypassing returns those of the six commands in the standard directories that lead neither to the switch in d nor to
// the wrapper. A client may call them by their paths.
func Bypassing(d *link.Dir) (all []Command) {
	seen := []string{d.Path}
	for _, dir := range iptables.Dirs() {
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil || d.IsAt(dir) || slices.Contains(seen, dir) {
			continue
		}
		seen = append(seen, dir)
		for _, name := range iptables.Commands() {
			c := At(filepath.Join(dir, name))
			if !c.Missing && !c.Wrapper && !d.IsAt(c.Switch) {
				all = append(all, c)
			}
		}
	}
	return all
}

// At returns where the path of one of the six commands leads.
func At(path string) Command {
	c := Command{Name: filepath.Base(path), Path: path}
	_, err := os.Lstat(path)
	c.Missing = err != nil
	for _, hop := range file.Hops(path) {
		if c.Switch == "" && filepath.Base(hop) == link.Switch {
			c.Switch = filepath.Dir(hop)
		}
	}
	c.ResolvesTo, c.Err = filepath.EvalSymlinks(path)
	if c.Err != nil {
		return c
	}
	c.Wrapper = IsWrapper(c.ResolvesTo)
	if !c.Wrapper {
		c.Backend = detect.Backend(iptables.BackendOf(filepath.Base(c.ResolvesTo)))
	}
	c.Err = file.Executable(c.ResolvesTo)
	return c
}
