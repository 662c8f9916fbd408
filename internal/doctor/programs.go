// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// Program is iptables' own program of one backend.
type Program struct {
	Backend evidence.Mode `json:"backend"`
	Path    string        `json:"path,omitempty"`
	Version string        `json:"version,omitempty"` // the line that it prints
	Error   string        `json:"error,omitempty"`
}

// programs looks at the program of each backend that a call would run.
func (p Place) programs(s *starter) (all []Program) {
	found := p.find("iptables")
	for _, mode := range evidence.Modes() {
		program := Program{Backend: mode, Path: found[mode].Path}
		err := found[mode].Err
		if err == nil {
			out := s.run(program.Path, mode, "iptables", "--version")
			program.Version = strings.TrimSpace(out.stdout)
			err = out.err
			if err != nil && out.text() != "" {
				err = errors.New(out.text())
			}
		}
		if err != nil {
			program.Error = err.Error()
		}
		all = append(all, program)
	}
	return all
}

// find finds the programs that a call would run: in the directory of the switch, then in the standard directories.
func (p Place) find(command string) layout.Programs {
	_, running := layout.Running()
	if !filepath.IsAbs(p.Dir) {
		return layout.FindPrograms(command, running)
	}
	return layout.FindPrograms(command, running, p.Dir)
}

// missing says why calls of a backend fail: what is wrong with the first of the six programs that cannot be run.
func (p Place) missing(mode evidence.Mode) error {
	for _, name := range p.Names {
		err := p.find(name.Name)[mode].Err
		if err != nil {
			return fmt.Errorf("%s for %s: %w", name.Name, mode, err)
		}
	}
	return nil
}

// Name is one of the six commands, and where it leads.
type Name struct {
	Name       string        `json:"name"`
	Path       string        `json:"path"` // as a client calls it
	ResolvesTo string        `json:"resolves_to,omitempty"`
	Backend    evidence.Mode `json:"backend,omitempty"` // "" if it is the wrapper, or is not known
	Wrapper    bool          `json:"wrapper"`
	Switched   bool          `json:"switched"` // through the switch
	Error      string        `json:"error,omitempty"`

	other  bool // it is neither the wrapper nor a program of iptables: a script, a copy
	silent bool // it is not iptables, or did not say which backend it runs
}

// names looks where the six commands lead. One that is neither the wrapper nor a program of iptables has to say itself
// what it runs.
func (p Place) names(s *starter) (all []Name) {
	for i, n := range p.Names {
		name := Name{
			Name:       n.Name,
			Path:       p.paths[i],
			ResolvesTo: n.ResolvesTo,
			Backend:    n.Mode,
			Wrapper:    n.Wrapper,
			Switched:   n.Switch != "",
		}
		switch {
		case n.Err != nil:
			name.Error = n.Err.Error()
		case !n.Wrapper && n.Mode == "":
			name.ask(s)
		}
		all = append(all, name)
	}
	return all
}

// ask has a command say which backend it runs, once for each value of the variable: only the wrapper follows that.
func (n *Name) ask(s *starter) {
	n.other = true
	var says []evidence.Mode
	for _, mode := range evidence.Modes() {
		out := s.run(n.Path, mode, n.Name, "--version")
		if errors.Is(out.err, errRefused) {
			return
		}
		says = append(says, backendIn(out.stdout))
	}
	switch {
	case slices.Equal(says, evidence.Modes()):
		n.Wrapper = true
	case says[0] == says[1] && says[0] != "":
		n.Backend = says[0]
	default:
		n.silent = true
	}
}

// backendIn is the backend that a program of iptables names with its version: "iptables v1.8.9 (nf_tables)".
func backendIn(version string) evidence.Mode {
	switch {
	case strings.Contains(version, "(nf_tables)"):
		return evidence.NFT
	case strings.Contains(version, "(legacy)"):
		return evidence.Legacy
	}
	return ""
}

// run calls iptables as the client does, in a way that leaves no trace, and returns what it printed: it has iptables
// load its most common match, and lists a chain of each table that the backend which the command runs has. A table that
// is not there is not listed: iptables-legacy would register it, and an old iptables-nft would create it.
func run(s *starter, names []Name, wanted evidence.Mode, h Host) (all []output) {
	for _, n := range names {
		isIPv6 := n.Name == "ip6tables"
		backend := n.Backend
		if n.Wrapper {
			backend = wanted
		}
		if n.Error != "" || backend == "" || n.Name != "iptables" && !isIPv6 {
			continue
		}
		family := evidence.IPv4
		if isIPv6 {
			family = evidence.IPv6
		}
		all = append(all, s.run(n.Path, wanted, n.Name, "-m", "comment", "-h"))
		for _, table := range h.Result.Of(backend)[family].Tables {
			all = append(all, s.run(n.Path, wanted, n.Name, "-w", "1", "-t", table, "-S", "OUTPUT"))
		}
	}
	return all
}
