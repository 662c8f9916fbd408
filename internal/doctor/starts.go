// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
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
	table   table // only its family and name
}

// start starts what the other readings call for.
func (s *state) start(starter *run.Starter) {
	for _, b := range detect.Backends() {
		s.programs = append(s.programs, s.startProgram(starter, b))
	}
	for f, command := range saves {
		n := s.named(command)
		b := s.runs(n)
		if b == "" || s.isOff(detect.Family(f)) {
			continue
		}
		for _, t := range s.existing(b, detect.Family(f)) {
			out := s.note(starter.Run(n.Path, b, command, "-t", t.name))
			s.saves = append(s.saves, save{Output: out, backend: b, table: t})
		}
	}
	for f, command := range loaders {
		n := s.named(command)
		b := s.runs(n)
		if b == s.wanted() && !s.isOff(detect.Family(f)) && (b == detect.NFT || s.loaded[f]) {
			s.load(starter, n, detect.Family(f))
		}
	}
}

// saves are the commands that list tables, and loaders those that load extensions, by family.
var (
	saves   = [...]string{detect.IPv4: "iptables-save", detect.IPv6: "ip6tables-save"}
	loaders = [...]string{detect.IPv4: "iptables", detect.IPv6: "ip6tables"}
)

// isOff reports whether the kernel has no packets of the family, so that there is nothing to fail.
func (s *state) isOff(f detect.Family) bool { return f == detect.IPv6 && s.noIPv6 }

// named is one of the six names.
func (s *state) named(command string) name {
	return s.names[slices.Index(exec.Names(), command)]
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

// existing are the tables of iptables that a backend has. To list another one would make it: iptables-legacy registers
// it, and an old iptables-nft creates it.
func (s *state) existing(b detect.Backend, f detect.Family) (tables []table) {
	if b == detect.Legacy {
		for _, name := range s.listed[f] {
			tables = append(tables, table{family: f, name: name})
		}
		return tables
	}
	for _, t := range s.nft.tables {
		if t.family == f {
			tables = append(tables, table{family: f, name: t.name})
		}
	}
	return tables
}

// note notes what doctor lacked to start a program.
func (s *state) note(out run.Output) run.Output {
	var exit *osexec.ExitError
	for _, errno := range []error{unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(out.Err, errno) && !errors.As(out.Err, &exit) {
			s.scarce = out.Err
		}
	}
	return out
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
		out := s.note(starter.Run(found.Path, b, loaders[0], "--version"))
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

// Extension is a match or target that iptables cannot load here.
type Extension struct {
	Command string `json:"command"` // that loads it
	Name    string `json:"name"`    // as an argument of iptables: "-m set", "-j TPROXY"
	Lacks   string `json:"lacks"`   // "library": this image does; "kernel": the kernel does
	Printed string `json:"printed"` // by the command, its first line
}

const (
	lacksLibrary = "library"
	lacksKernel  = "kernel"
)

// extensions are those that clients use most. A target is loaded only with one of its options, because without its
// library iptables takes its name for a chain's.
var extensions = []struct{ name, option string }{
	{"-m comment", ""}, {"-m conntrack", ""}, {"-m addrtype", ""}, {"-m mark", ""},
	{"-m multiport", ""}, {"-m owner", ""}, {"-m set", ""}, {"-m statistic", ""},
	{"-j MASQUERADE", "--random"}, {"-j REDIRECT", "--random"}, {"-j DNAT", "--random"},
	{"-j MARK", "--set-mark 1"}, {"-j REJECT", "--reject-with"}, {"-j TPROXY", "--on-port 1"},
}

// rejectWith is what REJECT answers with, by family.
var rejectWith = [...]string{detect.IPv4: " icmp-port-unreachable", detect.IPv6: " icmp6-port-unreachable"}

// load has a command load the extensions, and print its help: iptables asks the kernel for each one, and changes
// nothing. All matches fit into one start; if that fails, each has its own. For IPv6, only those are loaded that every
// client needs or a rule uses.
func (s *state) load(starter *run.Starter, n name, f detect.Family) {
	var matches, each []string
	for _, extension := range extensions {
		arguments := strings.TrimSpace(extension.name + " " + extension.option)
		isUsed := s.of(s.wanted()).uses[f][extension.name] || extension.name == comment
		switch {
		case f == detect.IPv6 && !isUsed:
		case extension.option == "":
			matches = append(matches, extension.name)
		case extension.name == "-j REJECT":
			each = append(each, arguments+rejectWith[f])
		default:
			each = append(each, arguments)
		}
	}
	if s.loads(starter, n, strings.Join(matches, " ")) != nil {
		each = append(matches, each...)
	}
	for _, arguments := range each {
		failed := s.loads(starter, n, arguments)
		if failed != nil && s.scarce == nil {
			s.fails = append(s.fails, *failed)
		}
	}
}

// comment is the match that everybody uses.
const comment = "-m comment"

// loads has a command load extensions. It returns nil if that succeeds, or if the command could not be started.
func (s *state) loads(starter *run.Starter, n name, arguments string) *Extension {
	out := s.note(starter.Run(n.Path, s.wanted(), strings.Fields(n.Name.Name+" "+arguments+" -h")...))
	var exit *osexec.ExitError
	lacksModule := strings.Contains(out.Stderr, "missing kernel module?")
	if !lacksModule && !(errors.As(out.Err, &exit) && isExtension.MatchString(out.Stderr)) {
		return nil
	}
	words := strings.Fields(arguments)
	e := &Extension{
		Command: out.Command, Name: words[0] + " " + words[1], Lacks: lacksKernel, Printed: firstLine(out.Stderr),
	}
	// Before 1.8.8, iptables prints the same for both.
	if !lacksModule && !hasLibrary(words[1]) {
		e.Lacks = lacksLibrary
	}
	return e
}

// isExtension matches what iptables prints of an extension that it cannot load.
var isExtension = regexp.MustCompile("Couldn't load |unknown option |Can't find library for |extension not found")

// hasLibrary reports whether iptables' directory of extensions has the library of one.
func hasLibrary(extension string) bool {
	directories := []string{"/usr/lib/*/xtables", "/usr/lib/xtables", "/usr/lib64/xtables", "/lib/xtables"}
	if own := os.Getenv("XTABLES_LIBDIR"); own != "" {
		directories = []string{own}
	}
	for _, directory := range directories {
		found, _ := filepath.Glob(directory + "/lib*t_" + extension + ".so") // a good pattern
		if len(found) > 0 {
			return true
		}
	}
	return false
}
