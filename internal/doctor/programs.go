// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// Program is iptables' own program of one backend.
type Program struct {
	Backend evidence.Mode `json:"backend"`
	Path    string        `json:"path,omitempty"`
	Version string        `json:"version,omitempty"` // the line that it prints
	Error   string        `json:"error,omitempty"`   // why it does not start
}

// programs looks at the program of each backend that a call would run.
func (p Place) programs(s *start.Starter) (all []Program) {
	found := p.find("iptables")
	for _, mode := range evidence.Modes() {
		program := Program{Backend: mode, Path: found[mode].Path}
		err := found[mode].Err
		if err == nil {
			out := s.Run(program.Path, mode, "iptables", "--version")
			program.Version = strings.TrimSpace(out.Stdout)
			err = out.Err
			if err != nil && out.Text() != "" {
				err = errors.New(out.Text())
			}
		}
		if err != nil {
			program.Error = err.Error()
		}
		all = append(all, program)
	}
	return all
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

// ask has each command that is neither the wrapper nor a program of iptables, such as a script, say which backend it
// runs, once for each value of the variable: only the wrapper follows that.
func (p Place) ask(s *start.Starter) {
	for i := range p.Names {
		n := &p.Names[i]
		if n.Err != nil || n.Wrapper || n.Mode != "" {
			continue
		}
		var says []evidence.Mode
		for _, mode := range evidence.Modes() {
			says = append(says, backendIn(s.Run(n.Path, mode, n.Name, "--version").Stdout))
		}
		n.Wrapper = slices.Equal(says, evidence.Modes())
		if says[0] == says[1] {
			n.Mode = says[0]
		}
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
// is not there is not listed: iptables-legacy would register it, and an old iptables-nft would create it. Nor are those
// of legacy listed without the lock, for which it could wait forever.
func (f *facts) run(s *start.Starter) (all []start.Output) {
	for _, n := range f.Names {
		backend := n.Mode
		if n.Wrapper {
			backend = f.wanted()
		}
		family, lists := map[string]evidence.Family{"iptables": evidence.IPv4, "ip6tables": evidence.IPv6}[n.Name]
		if n.Err != nil || backend == "" || !lists {
			continue
		}
		all = append(all, s.Run(n.Path, f.wanted(), n.Name, "-m", "comment", "-h"))
		if backend == evidence.Legacy && f.lockFault != nil {
			continue
		}
		for _, table := range f.Host.Of(backend)[family].Tables {
			all = append(all, s.Run(n.Path, f.wanted(), n.Name, "-w", "1", "-t", table, "-S", "OUTPUT"))
		}
	}
	return all
}
