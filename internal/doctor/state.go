// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// state is all that was read and tried. The findings are functions of it, and ask nothing more.
type state struct {
	host      detect.Result
	process   process
	network   Network
	nft       contents
	legacy    contents
	listed    [2][]string // the tables of legacy, by family
	loaded    [2]bool     // x_tables is, by family
	libDir    string      // XTABLES_LIBDIR
	lacks     string      // what nf_tables lacks for iptables' rules, in words for people
	loadable  bool        // the modules of legacy are in this root
	emulated  bool        // an emulator runs this program
	noIPv6    bool
	noProc    error // why a call cannot know its own file
	variable  detect.Backend
	variErr   error // why the variable is wrong
	names     []name
	others    []string  // programs with the six commands in other directories
	programs  []program // iptables' own, nft's first
	saves     []save
	fails     []Extension
	lists     map[string]bool // the commands that list rules, and PATH finds
	lockFile  string
	lockFault error // why iptables-legacy cannot lock it
	refused   []run.Refusal
	hangs     string // a program that did not end, of those that the wanted backend needs
	scarce    error  // what doctor itself lacked to start a program, or to ask
}

// observe reads and tries everything, once. limit is how long each program may run.
func observe(limit time.Duration) *state {
	s := &state{process: thisProcess(), emulated: isEmulated("/proc")}
	s.host, _ = detect.Survey() // what could not be asked is part of the evidence
	s.network = thisNetwork(s)
	s.nft.whole = s.host.Evidence.NFT.Kernel == detect.No
	if s.host.Evidence.NFT.Kernel == detect.Yes { // otherwise each question would have the kernel look for a module
		s.nft = readNFT()
	}
	for f := range s.listed {
		s.listed[f], s.loaded[f], _ = xtables.Listed(f == int(detect.IPv6)) // as above
	}
	s.legacy = readLegacy(s.listed)
	s.legacy.whole = s.legacy.whole && s.host.Evidence.Legacy.Err == nil
	s.loadable, _ = xtables.Loadable() // not, if that cannot be read
	s.noIPv6 = isMissing(unix.AF_INET6)
	_, s.noProc = os.Readlink(file.Running)
	s.variable, s.variErr = variable()
	s.lists = listers()
	s.libDir = os.Getenv("XTABLES_LIBDIR")

	starter := &run.Starter{Limit: limit}
	s.lookAtNames(starter)
	s.lacks = s.host.Evidence.Lacks
	asksMore := s.host.Evidence.NFT.Kernel == detect.Yes && s.host.Evidence.TakesRules == detect.NotAsked
	if s.wanted() == detect.NFT && asksMore {
		s.lacks = dryRun()
	}
	if s.wanted() == detect.Legacy {
		s.lockFile = cmp.Or(os.Getenv(lockVariable), defaultLock)
		s.lockFault = lockFault(s.lockFile)
	}
	s.start(starter)
	s.refused = starter.Refused
	s.scarce = starter.Scarce
	asked := errors.Join(s.host.Evidence.NFT.Err, s.host.Evidence.Legacy.Err)
	if s.scarce == nil && plan.IsScarce(asked) {
		s.scarce = asked
	}
	return s
}

// dryRun asks what nf_tables lacks, with the question that detect puts only where the answer depends on it.
func dryRun() string {
	var conn nft.Conn
	defer conn.Close()
	lacks, _ := conn.Lacks() // "" if it is not known
	return lacks
}

// isMissing reports whether the kernel has no sockets of a family.
func isMissing(family int) bool {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err == unix.EAFNOSUPPORT
}

// isEmulated reports whether an emulator such as qemu-user runs this program. It shows a program its own file as
// /proc/self/exe, but not as that of the thread.
func isEmulated(proc string) bool {
	process, err := os.Readlink(proc + "/self/exe")
	thread, threadErr := os.Readlink(proc + "/thread-self/exe")
	return err == nil && threadErr == nil && process != thread
}

// known reports whether the backend of the host is known: it is certain, or no other could be used, or a name shows it
// and the kernel answers with an error about the other backend, whose iptables could not work here either.
func (s *state) known() bool {
	byName := s.host.Reason == detect.KubeletHint || s.host.Reason == detect.KubeletCanary ||
		s.host.Reason == detect.HostProgram
	other := s.host.Evidence.Of(s.host.Backend.Other())
	var errno unix.Errno
	alone := byName && len(other.Markers) == 0 && errors.As(other.Err, &errno) && !s.mayLackFile(other.Err)
	return s.host.Certain || s.host.Reason == detect.OnlySupported || alone
}

// wanted is the backend that iptables should run: the host's where that is known, otherwise the one that runs here.
func (s *state) wanted() detect.Backend {
	runs := s.names[0].call.Backend
	if s.known() || runs == "" {
		return s.host.Backend
	}
	return runs
}

// of is what a backend has.
func (s *state) of(b detect.Backend) contents {
	if b == detect.Legacy {
		return s.legacy
	}
	return s.nft
}

// program is iptables' own program of a backend.
func (s *state) program(b detect.Backend) program {
	if b == detect.Legacy {
		return s.programs[1]
	}
	return s.programs[0]
}

// variable is the backend that the variable chooses, "" for none.
func variable() (detect.Backend, error) {
	value := os.Getenv(plan.Variable)
	backend := detect.Backend(value)
	switch {
	case value == "", value == "auto":
		return "", nil
	case backend.Valid():
		return backend, nil
	}
	return "", fmt.Errorf("%w: %q", plan.ErrVariable, value)
}
