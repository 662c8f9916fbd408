// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// What is started: iptables' programs for their versions, and the commands as a client calls them.

// program is iptables' own program of one backend.
type program struct {
	Program
	err error // why it does not start
}

// save is what a command printed that lists a table.
type save struct {
	run.Output
	backend detect.Backend
	table   string // "ip filter"
}

// saves are the commands that list tables, and loaders those that load extensions, by family.
var (
	saves   = [...]string{detect.IPv4: "iptables-save", detect.IPv6: "ip6tables-save"}
	loaders = [...]string{detect.IPv4: "iptables", detect.IPv6: "ip6tables"}
)

// listers are the commands for people that list rules, and that PATH finds.
func listers() map[string]bool {
	found := map[string]bool{"nft": inPath("nft") != ""}
	for _, b := range detect.Backends() {
		for _, command := range saves {
			single := iptables.Single(string(b), command)
			found[single] = inPath(single) != ""
		}
	}
	return found
}

// start starts what the other readings call for.
func (s *state) start(starter *run.Starter) {
	wanted := s.startProgram(starter, s.wanted())
	for _, f := range []detect.Family{detect.IPv4, detect.IPv6} {
		n := s.named(saves[f])
		b := s.runs(n)
		if s.isOff(f) {
			continue
		}
		for _, t := range s.existing(b, f) {
			out := starter.Run(n.Path, b, saves[f], "-t", t.Name)
			s.saves = append(s.saves, save{Output: out, backend: b, table: t.String()})
		}
		n = s.named(loaders[f])
		b = s.runs(n)
		if b == s.wanted() && (b == detect.NFT || s.loaded[f]) {
			s.fails = append(s.fails, s.load(starter, n, f)...)
		}
	}
	s.hangs = starter.Hangs
	other := s.startProgram(starter, s.wanted().Other()) // last: if it hangs, nothing else is kept from starting
	s.programs = []program{wanted, other}
	if wanted.Backend == detect.Legacy {
		s.programs = []program{other, wanted}
	}
}

// isOff reports whether the kernel has no packets of the family, so that there is nothing to fail.
func (s *state) isOff(f detect.Family) bool { return f == detect.IPv6 && s.noIPv6 }

// named is one of the six commands.
func (s *state) named(command string) name {
	return s.names[slices.Index(exec.Commands(), command)]
}

// runs is the backend that a name runs, the wanted one if it leads to the wrapper, "" if it cannot be called.
func (s *state) runs(n name) detect.Backend {
	switch {
	case !n.leads():
		return ""
	case n.Wrapper:
		return s.wanted()
	}
	return n.call.Backend
}

// existing are the tables of iptables that a backend has, read or not. To list another one would make it:
// iptables-legacy registers it, and an old iptables-nft creates it.
func (s *state) existing(b detect.Backend, f detect.Family) (tables []iptables.Table) {
	switch b {
	case detect.Legacy:
		for _, name := range s.listed[f] {
			tables = append(tables, iptables.Table{IPv6: f == detect.IPv6, Name: name})
		}
	case detect.NFT:
		for _, t := range s.nft.tables {
			if familyOf(t) == f {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

func familyOf(t iptables.Table) detect.Family {
	if t.IPv6 {
		return detect.IPv6
	}
	return detect.IPv4
}

// startProgram starts the program of a backend that a call would run: in the directory to which the client's iptables
// leads, then in the standard directories.
func (s *state) startProgram(starter *run.Starter, b detect.Backend) program {
	var directories []string
	if filepath.IsAbs(s.names[0].ResolvesTo) {
		directories = append(directories, filepath.Dir(s.names[0].ResolvesTo))
	}
	found, err := exec.Find(b, loaders[0], directories...)
	p := program{Program: Program{Backend: b, Path: found.Path}, err: err}
	if err == nil {
		out := starter.Run(found.Path, b, loaders[0], "--version")
		p.Version = strings.TrimSpace(out.Stdout)
		p.err, p.Error = out.Err, firstLine(out.Stderr)
	}
	switch {
	case p.err == nil:
		p.Error = ""
	case p.Error == "":
		p.Error = p.err.Error()
	}
	return p
}
