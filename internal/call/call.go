// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, makes the commands point to that
// backend's program as far as the answer may be stored, and execs the program.
package call

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// found is what a call has found out before it asks the kernel. It is looked up once and passed on.
type found struct {
	process self.Process
	argv    []string
	name    string // of the command

	programs self.Both
	names    layout.Names
	memory   memory.Memory
	query    detect.Query
}

// wrap detects the backend, stores the answer as far as it may, and execs the backend's program. It returns an exit
// status, and only if that fails.
func wrap(p self.Process, argv []string, stderr io.Writer) int {
	override, err := p.Override()
	if err != nil {
		return fail(stderr, 2, err, "one of these, or unset it")
	}
	f := look(p, argv, override)
	d := f.decide()
	err = f.programs.Errors[d.Mode]
	if err != nil {
		return cannotRun(stderr, f.name, d.Result, err)
	}
	stored := f.names.Store(d, &f.memory)
	r := f.toRun(d, stored)
	err = f.programs.Errors[r.Mode] // another call may have stored the other backend
	if err == nil {
		debug(p, stderr, r, stored, f.programs.Paths[r.Mode])
		err = process.Become(f.programs.Paths[r.Mode], argv)
	}
	f.names.Undo(stored)
	return cannotRun(stderr, f.name, r, err)
}

// look finds out what can be run and what the container remembers. With the override nothing else is asked.
func look(p self.Process, argv []string, override detect.Mode) found {
	f := found{process: p, argv: argv, name: programs.Base(argv[0]), names: layout.Names{Self: p}}
	f.programs = p.FindBoth(tree.Tree{}, p.Called, f.name)
	f.query.Installed = f.programs.Only()
	f.query.Override = override
	if override != "" {
		return f
	}
	f.names.Container = memory.ThisContainer()
	f.memory = f.names.Memory()
	f.query.Remembered = f.runnable(f.memory.Remembered())
	f.query.Home = f.runnable(f.memory.Home())
	f.query.DryRun = programs.Adds(argv)
	f.query.NAT = f.query.DryRun && programs.NeedsNAT(argv)
	return f
}

// runnable returns what is remembered, or nothing if the program for it is missing: then the other rows of the
// decision apply.
func (f *found) runnable(remembered detect.Memory) detect.Memory {
	if f.programs.Missing(remembered.Mode) {
		return detect.Memory{}
	}
	return remembered
}

// decide asks the kernel.
func (f *found) decide() layout.Decision {
	r, doubted := f.memory.Answer(f.query)
	return layout.Decision{
		Result:  r,
		Doubted: doubted,
		Adds:    f.query.DryRun,
		Changes: programs.Changes(f.argv),
		Void:    void(f.query.Remembered, r),
		Program: f.programs.Paths[r.Mode],
	}
}

// void reports whether an answer shows that what is remembered does not hold: a lower row of the decision applied.
// Kubelet's chains say nothing about that, because they outrank it.
func void(remembered detect.Memory, r detect.Result) bool {
	return remembered.Mode != "" && r.Reason != detect.Remembered && !r.Reason.Kubelet()
}

// toRun returns the answer with which the call goes on: its own, or the one that a faster call has stored. An answer
// whose program is missing here is passed over, as a remembered one is.
func (f *found) toRun(d layout.Decision, stored layout.Stored) detect.Result {
	if stored.Mode == d.Mode || f.programs.Missing(stored.Mode) {
		return d.Result
	}
	return detect.Result{Mode: stored.Mode, Reason: detect.Remembered, Evidence: d.Evidence}
}

// Exit statuses of a command that could not be run, as shells and env(1) use them. The wrapper never exits with 1,
// which clients of iptables take for "no such rule".
const (
	statusUnusable = 126 // the program exists and cannot be executed
	statusMissing  = 127 // there is no such program
)

// status returns the exit status for a program that cannot be run.
func status(err error) int {
	if errors.Is(err, programs.ErrMissing) {
		return statusMissing
	}
	return statusUnusable
}

// cannotRun says why the backend that the evidence asks for does not run. The other backend would be no substitute: the
// host would not see its rules.
func cannotRun(stderr io.Writer, name string, r detect.Result, err error) int {
	wrong := "if the backend is wrong, set " + programs.ModeVariable
	try := ""
	switch {
	case errors.Is(err, programs.ErrRecursion):
		try = "that file is the wrapper itself: restore iptables' own program there"
	case errors.Is(err, unix.E2BIG):
		try = "pass fewer arguments or a smaller environment: the program's path counts too, and is longer than " +
			"the command's"
	case errors.Is(err, programs.ErrMissing):
		try = fmt.Sprintf("install the %s version of iptables in this image; %s", r.Mode, wrong)
	default:
		try = "let this user execute that file; " + wrong
	}
	return fail(stderr, status(err), fmt.Errorf("cannot run %s for %s: %w (%s)", name, r.Mode, err, r), try)
}

func fail(stderr io.Writer, status int, err error, try string) int {
	fmt.Fprintf(stderr, "iptables-wrapper: %v\niptables-wrapper: try: %s\n", err, try)
	return status
}

// debug says in one line what the wrapper does, if IPTABLES_WRAPPER_DEBUG is set.
func debug(p self.Process, stderr io.Writer, r detect.Result, stored layout.Stored, program string) {
	asked := slices.Contains([]string{"1", "true"}, process.Variable(programs.DebugVariable))
	if !asked || !p.Trusted() {
		return
	}
	switched := "the switch was replaced"
	if stored.Unmoved != nil {
		switched = fmt.Sprintf("the switch was not replaced (%v)", stored.Unmoved)
	}
	fmt.Fprintf(stderr, "iptables-wrapper: %s [%s]; %s; running %s\n", r, r.Reason, switched, program)
}
