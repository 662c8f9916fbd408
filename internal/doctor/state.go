// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
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
	commands  []Command // as PATH finds them
	elsewhere []Command
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
	isOff    bool     // the kernel does not have it
	listed   []string // the tables of legacy
	unloaded bool     // x_tables is not loaded, and cannot be loaded here
	lacks    string   // what nf_tables lacks to take iptables' rules, in words for people
	refused  error    // why it refused a dry run
}

var (
	families = []detect.Family{detect.IPv4, detect.IPv6}
	savers   = [...]string{detect.IPv4: "iptables-save", detect.IPv6: "ip6tables-save"}
)

// observe reads and tries everything, once. limit is how long each program may run.
func observe(limit time.Duration) *state {
	host, failed := detect.Survey()
	seen := look.Here(host, failed)
	s := &state{host: host, record: seen.Recorded, process: thisProcess(), network: thisNetwork(host),
		errors: map[detect.Backend]error{}}
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
	s.errors[detect.NFT] = cmp.Or(host.Evidence.NFT.Err, errNFT)
	s.errors[detect.Legacy] = cmp.Or(host.Evidence.Legacy.Err, errLegacy)
	if hasNFT && s.wanted() == detect.NFT {
		s.tryRules()
	}
	if s.wanted() == detect.Legacy {
		s.lockFile = cmp.Or(os.Getenv(lockVariable), "/run/xtables.lock")
		s.lockErr = tryLock(s.lockFile)
	}
	for _, b := range detect.Backends() {
		s.programs = append(s.programs, s.askProgram(starter, b))
	}
	s.exposed, s.scarce = starter.Exposed, starter.Scarce
	if plan.IsScarce(failed) {
		s.scarce = cmp.Or(s.scarce, failed)
	}
	return s
}

// lookAt looks for what the kernel and this image have of a family.
func (s *state) lookAt(f detect.Family) family {
	const net = "/proc/thread-self/net/"
	var st unix.Stat_t
	isIPv6 := f == detect.IPv6
	listed, loaded, err := xtables.Listed(isIPv6)
	hasModule, _ := xtables.Loadable() // not, if that cannot be read
	return family{
		isOff:    isIPv6 && unix.Stat(net+"if_inet6", &st) == unix.ENOENT && unix.Stat(net+"dev", &st) == nil,
		listed:   listed,
		unloaded: err == nil && !loaded && !(hasModule && s.process.mayLoad),
	}
}

// call calls iptables as a client does: it lists the rules, and loads the match that most rules have.
func (s *state) call(starter *run.Starter) {
	for _, f := range families {
		if !s.families[f].isOff {
			s.start(starter, s.named(savers[f]))
		}
	}
	c := s.commands[0]
	if s.hasStarted(c.Call.Backend) && s.host.Evidence.Of(c.Call.Backend).Kernel == detect.Yes {
		s.start(starter, c, "-m", "comment", "-h")
	}
}

// start starts a command if it leads to the wrapper or to a program of iptables, and runs something.
func (s *state) start(starter *run.Starter, c Command, arguments ...string) {
	if c.Call.Backend == "" || !c.Wrapper && c.Backend == "" {
		return
	}
	argv := slices.Concat([]string{c.Name}, arguments)
	out := run.Output{Command: strings.Join(argv, " "), Err: starter.Check(c.Call.Program)}
	if out.Err == nil {
		out = starter.Run(c.Path, c.Call.Backend, argv...)
	}
	s.calls = append(s.calls, judge(c.Call.Backend, out))
}

// hasStarted reports whether each call of a backend could start.
func (s *state) hasStarted(b detect.Backend) bool {
	return !slices.ContainsFunc(s.calls, func(c called) bool { return c.backend == b && !c.started() })
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
	isCalled := c.Call.Backend == b
	found, err := exec.Program{Path: c.Call.Program}, error(nil)
	switch {
	case !isCalled:
		found, err = exec.Find(b, c.Name, filepath.Dir(cmp.Or(c.ResolvesTo, c.Path)))
	case !s.hasStarted(b):
		err = errors.New("not started again")
	}
	p := Program{Backend: b, Path: found.Path}
	if err != nil {
		p.Error = err.Error()
		return p
	}
	version := judge(b, starter.Run(p.Path, b, c.Name, "--version"))
	p.Version = strings.Join(lines(version.Stdout), " ")
	if version.Err != nil {
		p.Error = version.String()
	}
	isNew := !slices.ContainsFunc(s.calls, called.failed)
	if version.failed() && isNew && isCalled && b == s.wanted() {
		s.calls = append(s.calls, version)
	}
	return p
}

// known reports whether the host's backend is known: it is certain, or no other could be used, or a marker shows it,
// and the kernel refuses to say what the other backend has.
func (s *state) known() bool {
	has, other := s.host.Evidence.Of(s.host.Backend), s.host.Evidence.Of(s.host.Backend.Other())
	isAlone := len(has.Markers) > 0 && len(other.Markers) == 0 && isRefusal(other.Err)
	return s.host.Certain || s.host.Reason == detect.OnlySupported || isAlone
}

// wanted is the backend that iptables should run: the host's if that is known, otherwise the one that runs here.
func (s *state) wanted() detect.Backend {
	if s.known() {
		return s.host.Backend
	}
	return cmp.Or(s.commands[0].Call.Backend, s.host.Backend)
}

// program is iptables' own program of the wanted backend.
func (s *state) program() Program { return s.programs[slices.Index(detect.Backends(), s.wanted())] }

const lockVariable = "XTABLES_LOCKFILE"

var errHeld = errors.New("it was held for a second")

// tryLock takes the lock as iptables-legacy does, for an instant, but does not wait to open a FIFO. It creates no file:
// where there is none, it returns what would keep this user from creating one.
func tryLock(path string) error {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	switch {
	case err == unix.ENOENT:
		hops := file.Hops(path) // where there is a symlink, the file that it names would be created
		return os.NewSyscallError("create", unix.Access(filepath.Dir(hops[len(hops)-1]), unix.W_OK|unix.X_OK))
	case st.Mode&unix.S_IFMT == unix.S_IFIFO:
		return errors.New("it is a FIFO")
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer unix.Close(fd)
	const tries, pause = 200, 5 * time.Millisecond
	for range tries {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		time.Sleep(pause)
	}
	if err == unix.EWOULDBLOCK {
		return errHeld
	}
	return os.NewSyscallError("flock", err)
}
