// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// state is all that was read and tried. The diagnoses are functions of it, and ask nothing more.
type state struct {
	host      detect.Result
	record    detect.Backend
	commands  []command // as PATH finds them
	elsewhere []command
	process   Process
	network   Network
	families  [2]family // by detect.Family
	calls     []called
	tables    []rules.Table
	errors    map[detect.Backend]error // why not all could be read
	programs  []Program                // iptables' own, nft's first
	lockFile  string
	lockErr   error    // why iptables-legacy cannot take its lock
	exposed   []string // what others can write, so that a program was not started
	scarce    error    // what doctor itself lacked
}

// family is what the kernel and this image have of one family.
type family struct {
	isOff    bool          // the kernel does not have it
	listed   []string      // the tables of legacy
	loaded   detect.Answer // whether x_tables is
	loadable bool          // whether x_tables could be loaded here
	lacks    string        // what nf_tables lacks to take iptables' rules, in words for people
	refused  error         // why it refused a dry run
}

var (
	families = []detect.Family{detect.IPv4, detect.IPv6}
	savers   = [...]string{detect.IPv4: "iptables-save", detect.IPv6: "ip6tables-save"}
)

// observe reads and tries everything, once. limit is how long each program may run.
func observe(limit time.Duration) *state {
	host, failed := detect.Survey()
	seen := plan.Here(host, failed)
	s := &state{host: host, record: seen.Recorded, process: thisProcess(), network: thisNetwork(host)}
	s.commands = commandsInPath(seen)
	s.elsewhere = commandsElsewhere(seen, s.commands)
	for _, f := range families {
		s.families[f] = s.lookAt(f)
	}
	starter := &run.Starter{Limit: limit, Keep: aboutTable}
	s.call(starter)
	hasNFT := host.Evidence.NFT.Kernel == detect.Yes
	tables, errNFT, errLegacy := rules.Read(hasNFT)
	s.tables = tables
	s.errors = map[detect.Backend]error{
		detect.NFT:    cmp.Or(host.Evidence.NFT.Err, errNFT),
		detect.Legacy: cmp.Or(host.Evidence.Legacy.Err, errLegacy),
	}
	if hasNFT && s.wanted() == detect.NFT {
		s.tryRules()
	}
	if s.wanted() == detect.Legacy {
		s.lockFile = lockFile()
		s.lockErr = tryLock(s.lockFile)
	}
	for _, b := range detect.Backends() {
		s.programs = append(s.programs, s.askProgram(starter, b))
	}
	s.exposed, s.scarce = starter.Exposed, starter.Scarce
	if s.scarce == nil && plan.IsScarce(failed) {
		s.scarce = failed
	}
	return s
}

// lookAt looks for what the kernel and this image have of a family.
func (s *state) lookAt(f detect.Family) (a family) {
	const net = "/proc/thread-self/net/"
	var st unix.Stat_t
	isIPv6 := f == detect.IPv6
	a.isOff = isIPv6 && unix.Stat(net+"if_inet6", &st) == unix.ENOENT && unix.Stat(net+"dev", &st) == nil
	listed, loaded, err := xtables.Listed(isIPv6)
	a.listed, a.loaded = listed, detect.No
	switch {
	case err != nil:
		a.loaded = detect.Unknown
	case loaded:
		a.loaded = detect.Yes
	}
	hasModule, _ := xtables.Loadable() // not, if that cannot be read
	a.loadable = hasModule && s.process.mayLoad
	return a
}

// call calls iptables as a client does: it lists the rules, and loads the match that most rules have. (To list a table
// by its name could make it.)
func (s *state) call(starter *run.Starter) {
	for _, f := range families {
		if !s.families[f].isOff {
			s.start(starter, f, s.named(savers[f]))
		}
	}
	c := s.commands[0]
	if s.hasStarted() && s.host.Evidence.Of(c.plan.Backend).Kernel == detect.Yes {
		s.start(starter, detect.IPv4, c, "-m", "comment", "-h")
	}
}

// start starts a command if it leads to the wrapper or to a program of iptables, and runs the wanted backend. If it runs
// the other one, wrongBackend has it.
func (s *state) start(starter *run.Starter, f detect.Family, c command, arguments ...string) {
	if !c.Wrapper && c.Backend == "" || c.plan.Backend != s.wanted() {
		return
	}
	argv := slices.Concat([]string{c.Name}, arguments)
	out := run.Output{Command: strings.Join(argv, " "), Err: starter.Check(c.plan.Program)}
	if out.Err == nil {
		out = starter.Run(c.Path, c.plan.Backend, argv...)
	}
	s.calls = append(s.calls, judge(f, out))
}

// hasStarted reports whether each call could start.
func (s *state) hasStarted() bool {
	return !slices.ContainsFunc(s.calls, func(c called) bool { return !c.started() })
}

// tryRules asks whether nf_tables takes iptables' rules, for each family in which no rule shows that it does.
func (s *state) tryRules() {
	for _, f := range families {
		hasRules := func(t rules.Table) bool { return isOf(t, detect.NFT) && familyOf(t) == f && t.Rules > 0 }
		if s.families[f].isOff || slices.ContainsFunc(s.tables, hasRules) {
			continue
		}
		var conn nft.Conn
		s.families[f].lacks, s.families[f].refused = conn.Lacks(f == detect.IPv6)
		conn.Close()
	}
}

// askProgram asks iptables' own program of a backend for its version: the program that a call runs, or would run. What
// a call could not start is not started again.
func (s *state) askProgram(starter *run.Starter, b detect.Backend) Program {
	c := s.commands[0]
	p := Program{Backend: b, Path: c.plan.Program}
	isCalled := c.plan.Backend == b
	if !isCalled {
		var dirs []string
		if filepath.IsAbs(c.ResolvesTo) {
			dirs = append(dirs, filepath.Dir(c.ResolvesTo))
		}
		found, err := exec.Find(b, c.Name, dirs...)
		if err != nil {
			p.Error = err.Error()
			return p
		}
		p.Path = found.Path
	}
	if isCalled && !s.hasStarted() {
		p.Error = "not started again"
		return p
	}
	out := starter.Run(p.Path, b, c.Name, "--version")
	p.Version = strings.Join(lines(out.Stdout), " ")
	if out.Err == nil {
		return p
	}
	version := judge(detect.IPv4, out)
	p.Error = version.String()
	if isCalled && b == s.wanted() && !slices.ContainsFunc(s.calls, called.failed) {
		s.calls = append(s.calls, version)
	}
	return p
}

// known reports whether the host's backend is known: it is certain, or no other could be used, or a marker shows it,
// and the kernel refuses to say what the other backend has.
func (s *state) known() bool {
	byMarker := []detect.Reason{detect.KubeletHint, detect.KubeletCanary, detect.HostProgram}
	other := s.host.Evidence.Of(s.host.Backend.Other())
	isAlone := slices.Contains(byMarker, s.host.Reason) && len(other.Markers) == 0 && isRefusal(other.Err)
	return s.host.Certain || s.host.Reason == detect.OnlySupported || isAlone
}

// wanted is the backend that iptables should run: the host's if that is known, otherwise the one that runs here.
func (s *state) wanted() detect.Backend {
	if s.known() {
		return s.host.Backend
	}
	return cmp.Or(s.commands[0].plan.Backend, s.host.Backend)
}
