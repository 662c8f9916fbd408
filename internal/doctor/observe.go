// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// observation is all that the findings depend on.
type observation struct {
	Report
	inPath    bool        // PATH finds iptables
	calls     []here.Here // what a call of each name runs, in the order of Names
	variable  detect.Backend
	wrong     error // why the variable is wrong
	process   process
	runs      []run.Output // of what the client runs
	ruleset   ruleset      // of nf_tables
	listed    [2][]string  // the tables of legacy that exist, by family
	legacy    []table      // those that could be listed
	lockFault error        // why iptables-legacy cannot have its lock
	lacks     string       // what nf_tables lacks for iptables' rules, in words for people
	loadable  bool         // the modules of legacy are in this root
	library   bool         // the library of the match that runs load is there
	commands  []string     // those of nft, iptables-nft-save and its like that PATH finds
	refused   []string     // why programs were not started
}

// Examine looks at everything and changes nothing. It starts iptables' own programs and the iptables that PATH finds,
// if nobody but root and the caller can change them, to list rules and to print their versions. limit is how long each
// may run. reference is the tag or the commit of this program's documentation.
func Examine(limit time.Duration, reference string) Report {
	s := &run.Starter{Limit: limit}
	var o observation
	o.Version = Version
	result, _ := detect.Survey() // what could not be asked is part of the evidence
	o.Host = NewHost(result)
	o.process = thisProcess()
	o.Capabilities = o.process.capabilities()
	o.Kernel = kernelRelease()
	o.ruleset, _ = readRuleset() // what could not be asked is part of the evidence
	o.Native = append([]Native{}, o.ruleset.native...)
	o.library = hasLibrary("libxt_comment.so")
	o.commands = slices.DeleteFunc([]string{
		"nft", "iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save",
	}, func(command string) bool { return inPath(command) == "" })
	o.look(s)
	if o.wanted() == detect.Legacy {
		o.lockFault = lockFault()
	}
	o.loadable, _ = xtables.Loadable() // not, if that cannot be read
	o.lacks = o.Host.Evidence.Lacks
	if o.wanted() == detect.NFT && o.Host.Evidence.TakesRules == detect.NotAsked {
		o.lacks = dryRun()
	}
	o.Network = thisNetwork(result)
	o.Programs = o.programs(s)
	for f := range o.listed {
		o.listed[f], _, _ = xtables.Listed(f == int(detect.IPv6)) // as above
	}
	o.run(s)
	o.listLegacy(s)
	o.Messages = explain(o.runs)
	o.refused = s.Refused
	o.diagnose(reference)
	return o.Report
}

// dryRun asks what nf_tables lacks, with the question that detect puts only where the answer depends on it.
func dryRun() string {
	var conn nft.Conn
	defer conn.Close()
	lacks, _ := conn.Lacks() // "" if it is not known
	return lacks
}

// inPath returns the path of a command as a shell finds it, "" if it does not.
func inPath(name string) string {
	path, err := osexec.LookPath(name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// look finds out where the six names lead, and what calls of them run: by PATH, otherwise beside iptables.
func (o *observation) look(s *run.Starter) {
	o.inPath = inPath("iptables") != ""
	directory := filepath.Dir(here.Iptables())
	o.variable, o.wrong = call.Wanted()
	record, _ := link.OpenRecord() // the zero Record has nothing
	held := record.Read()
	for _, name := range exec.Names() {
		n := link.LookAt(cmp.Or(inPath(name), filepath.Join(directory, name)))
		ask(s, &n)
		o.Names = append(o.Names, n)
		o.calls = append(o.calls, here.Of(n, o.Host.Result, held))
	}
	o.Here = o.calls[0]
}

// ask has a command that is neither the wrapper nor a program of iptables, such as a script, say which backend it runs,
// once for each value of the variable: only the wrapper follows that.
func ask(s *run.Starter, n *link.Name) {
	if n.Err != nil || n.Wrapper || n.Backend != "" {
		return
	}
	var says []detect.Backend
	for _, b := range detect.Backends() {
		says = append(says, backendIn(s.Run(n.Path, b, n.Name, "--version").Stdout))
	}
	n.Wrapper = slices.Equal(says, detect.Backends())
	if says[0] == says[1] {
		n.Backend = says[0]
	}
}

// backendIn is the backend that a program of iptables names with its version: "iptables v1.8.9 (nf_tables)".
func backendIn(version string) detect.Backend {
	switch {
	case strings.Contains(version, "(nf_tables)"):
		return detect.NFT
	case strings.Contains(version, "(legacy)"):
		return detect.Legacy
	}
	return ""
}

// find finds a program as a call does: in the directory to which the client's iptables leads, then in the standard
// directories.
func (o *observation) find(b detect.Backend, command string) (exec.Program, error) {
	var directories []string
	if filepath.IsAbs(o.Names[0].ResolvesTo) {
		directories = append(directories, filepath.Dir(o.Names[0].ResolvesTo))
	}
	return exec.Find(b, command, directories...)
}

// programs looks at the program of each backend that a call would run.
func (o *observation) programs(s *run.Starter) (all []Program) {
	for _, b := range detect.Backends() {
		found, err := o.find(b, "iptables")
		program := Program{Backend: b, Path: found.Path}
		if err == nil {
			out := s.Run(found.Path, b, "iptables", "--version")
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

// run calls iptables as the client does, in a way that leaves no trace: it has iptables load its most common match,
// and list each table that exists in the backend which the command runs. Another table would be made by that:
// iptables-legacy registers it, and an old iptables-nft creates it. iptables-save takes no lock.
func (o *observation) run(s *run.Starter) {
	for i, n := range o.Names {
		b := o.calls[i].Backend
		if n.Wrapper {
			b = o.wanted()
		}
		if n.Err != nil || b == "" {
			continue
		}
		if n.Name == "iptables" || n.Name == "ip6tables" {
			o.runs = append(o.runs, s.Run(n.Path, o.wanted(), n.Name, "-m", "comment", "-h"))
		}
		for f, command := range saves {
			if n.Name == command {
				for _, name := range o.existing(b, detect.Family(f)) {
					o.runs = append(o.runs, s.Run(n.Path, o.wanted(), n.Name, "-t", name))
				}
			}
		}
	}
}

// existing are the tables of iptables that a backend has.
func (o *observation) existing(b detect.Backend, f detect.Family) (names []string) {
	if b == detect.Legacy {
		return o.listed[f]
	}
	for _, t := range o.ruleset.tables {
		if t.family == f {
			names = append(names, t.name)
		}
	}
	return names
}

// saves are the commands that list tables, by family.
var saves = [...]string{detect.IPv4: "iptables-save", detect.IPv6: "ip6tables-save"}

// listLegacy has iptables' own program list the tables of legacy, where that is the other backend.
func (o *observation) listLegacy(s *run.Starter) {
	if o.wanted() == detect.Legacy {
		return
	}
	for f, command := range saves {
		program, err := o.find(detect.Legacy, command)
		if err != nil {
			continue
		}
		for _, name := range o.listed[f] {
			out := s.Run(program.Path, detect.Legacy, command, "-t", name)
			if out.Err == nil {
				o.legacy = append(o.legacy, parse(detect.Family(f), name, out.Stdout))
			}
		}
	}
}
