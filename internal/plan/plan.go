// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan is the one model of a call: what a call of one of the six commands runs, and why. A wrapped call
// executes its plan. The commands detect, select and doctor print the plan of a call that they do not make.
package plan

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Variable is the environment variable that chooses the backend of one call.
const Variable = "IPTABLES_WRAPPER_BACKEND"

// Errors of a call, besides those of package exec.
var (
	ErrNoProc     = errors.New("/proc does not show the running file")
	ErrSetUID     = errors.New("it runs set-user-ID")
	ErrVariable   = errors.New("environment variable " + Variable + " is not one of auto, nft, legacy")
	ErrByVariable = errors.New(Variable + " is set")
	ErrScarce     = errors.New("cannot ask which backend the host uses")
)

// How is what makes a command run a backend.
type How string

const (
	Stored     How = "stored"      // the switch points to the program
	ByVariable How = "variable"    // the wrapper, by the variable
	Recorded   How = "recorded"    // the wrapper, by the record of this network namespace
	Asked      How = "asked"       // the wrapper, which has asked the kernel
	NotWrapped How = "not-wrapped" // another program than the wrapper
	Nothing    How = "nothing"     // the call fails
)

// Seen is all that the plan of a call depends on.
type Seen struct {
	Stored   detect.Backend // to whose program the switch points, "" if to the wrapper
	SetUID   bool           // the call runs with another user than its caller
	Variable string         // the value of the environment variable
	NoProc   error          // why /proc does not show the called wrapper's file, nil if it does

	// What matters only if the call is not Settled:
	Recorded detect.Backend  // by this network namespace's record, "" if there is none
	Evidence detect.Evidence // of detect.Host, with Recorded held
	Failed   error           // what could not be asked

	// Find finds a backend's program, as exec.Find does.
	Find func(detect.Backend) (exec.Program, error)
}

// Plan is what a call of a command runs.
type Plan struct {
	Path    string         `json:"path,omitempty"`    // of the command, "" if this call makes the plan
	Backend detect.Backend `json:"backend,omitempty"` // "" if it is not known
	Program string         `json:"program,omitempty"` // the path of the program that runs
	How     How            `json:"how"`
	Error   string         `json:"error,omitempty"` // why nothing runs
	Err     error          `json:"-"`               // the same
	Certain bool           `json:"-"`               // the kernel was asked, and the answer is certain

	why any // a detect.Result or an error, for Because: most calls need no text
}

// Because returns one line for people: the backend, and why it is that one.
func (p Plan) Because() string {
	r, isAsked := p.why.(detect.Result)
	if isAsked {
		return r.String()
	}
	return fmt.Sprintf("%s: %v", p.Backend, p.why)
}

// Of returns the plan of a call: the first row that applies.
func Of(s Seen) Plan {
	p, isSettled := Settled(s)
	if isSettled {
		return p
	}
	r := detect.Decide(s.Evidence, s.Recorded)
	how := Asked
	if r.Reason == detect.Held {
		how = Recorded
	}
	if IsScarce(s.Failed) && !r.Certain && how == Asked {
		return Fails(fmt.Errorf("%w: %w", ErrScarce, s.Failed))
	}
	backend, program, err := Guess(r, s.Find)
	if err != nil {
		return Fails(fmt.Errorf("%w (%s)", err, r))
	}
	return Plan{Backend: backend, Program: program.Path, How: how, Certain: r.Certain, why: r}
}

// Settled returns the plan of a call that does not ask the kernel, and whether this is such a call.
func Settled(s Seen) (p Plan, isSettled bool) {
	wanted := detect.Backend(s.Variable)
	switch {
	case s.Stored != "":
		return s.planOf(Stored, s.Stored, link.ErrStored), true
	case s.SetUID:
		return Fails(ErrSetUID), true
	case wanted != "" && wanted != "auto" && !wanted.Valid():
		return Fails(fmt.Errorf("%w: %q", ErrVariable, s.Variable)), true
	case s.NoProc != nil: // Find could not tell the wrapper from a program
		return Fails(fmt.Errorf("%w: %w", ErrNoProc, s.NoProc)), true
	case wanted.Valid():
		return s.planOf(ByVariable, wanted, ErrByVariable), true
	}
	return Plan{}, false
}

// planOf returns the plan to run a backend's program, and never the other one's.
func (s Seen) planOf(how How, b detect.Backend, why error) Plan {
	program, err := s.Find(b)
	if err != nil {
		return Fails(fmt.Errorf("%w (%s: %w)", err, b, why))
	}
	return Plan{Backend: b, Program: program.Path, How: how, why: why}
}

// Fails is the plan of a call that fails with an error.
func Fails(err error) Plan { return Plan{How: Nothing, Err: err, Error: err.Error()} }

// Guess returns the backend that a result runs, and its program. If only the other backend's program is there, Guess
// returns that one for a guess: it would run without a wrapper, too. It never does if the other backend is known to be
// wrong: the result is certain, the container has used this one (Held), or the kernel lacks the other one
// (OnlySupported).
func Guess(
	r detect.Result, find func(detect.Backend) (exec.Program, error),
) (detect.Backend, exec.Program, error) {
	program, err := find(r.Backend)
	mayBeOther := !r.Certain && r.Reason != detect.Held && r.Reason != detect.OnlySupported
	if !mayBeOther || !errors.Is(err, exec.ErrMissing) {
		return r.Backend, program, err
	}
	other, otherErr := find(r.Backend.Other())
	if otherErr != nil {
		return r.Backend, program, err
	}
	return r.Backend.Other(), other, nil
}

// IsScarce reports whether err means that memory or descriptors were short. The question may succeed a moment later, so
// the caller must not act on a guess.
func IsScarce(err error) bool {
	for _, errno := range [...]unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// String returns one line for people: "nft (/usr/sbin/xtables-nft-multi, stored in the switch)".
func (p Plan) String() string {
	if p.Err != nil {
		return "nothing (" + p.Error + ")"
	}
	why := map[How]string{
		Stored:     "stored in the switch",
		ByVariable: "by " + Variable,
		Recorded:   "recorded: already in use here",
		Asked:      "decided at each call",
		NotWrapped: "not wrapped",
	}[p.How]
	return cmp.Or(string(p.Backend), "an unknown backend") + " (" + p.Program + ", " + why + ")"
}
