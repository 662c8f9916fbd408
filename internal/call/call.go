// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, makes the commands point to that
// backend's program as far as the answer may be stored, and execs the program.
package call

import (
	"errors"
	"fmt"
	"io"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// wrap detects the backend, stores the answer as far as it may, and execs the backend's program. It returns an exit
// status, and only if that fails.
func wrap(p self.Process, argv []string, stderr io.Writer) int {
	name := programs.Base(argv[0])
	override, err := p.Override()
	if err != nil {
		return fail(stderr, 2, err, "")
	}
	paths, errs, only := p.FindBoth(tree.Tree{}, p.Called, name)
	q := detect.Query{Override: override, Installed: only}
	names := layout.Names{Self: p}
	var m memory.Memory
	if override == "" {
		names.Container = memory.ThisContainer()
		m = names.Memory()
		if q.Remembered = m.Remembered(); errors.Is(errs[q.Remembered.Mode], exec.ErrMissing) {
			q.Remembered = detect.Memory{} // then the other rows of the decision apply
		}
		q.DryRun = programs.Adds(argv)
		q.NAT = q.DryRun && programs.NeedsNAT(argv)
	}

	r := m.Answer(q)
	if errs[r.Mode] != nil {
		return cannotRun(stderr, name, r, errs[r.Mode])
	}
	stored := names.Store(layout.Decision{
		Result: r, Adds: q.DryRun, Changes: programs.Changes(argv), Program: paths[r.Mode],
		Void: q.Remembered.Mode != "" && r.Reason != detect.Remembered && !r.Reason.Kubelet(),
	}, &m)
	if stored.Mode != r.Mode && !errors.Is(errs[stored.Mode], exec.ErrMissing) { // another call was first
		r = detect.Result{Mode: stored.Mode, Reason: detect.Remembered, Evidence: r.Evidence}
	}
	debug(p, stderr, r, stored, paths[r.Mode])
	if err = errs[r.Mode]; err == nil {
		err = exec.Become(paths[r.Mode], argv)
	}
	names.Undo(stored)
	return cannotRun(stderr, name, r, err)
}

// cannotRun says why the backend that the evidence asks for does not run. The other backend would be no substitute: the
// host would not see its rules.
func cannotRun(stderr io.Writer, name string, r detect.Result, err error) int {
	hint := fmt.Sprintf("install the %s version of iptables in this image; if the backend is wrong, set IPTABLES_WRAPPER_MODE", r.Mode)
	if errors.Is(err, exec.ErrRecursion) {
		hint = "that file is the wrapper itself: restore iptables' own program there"
	}
	return fail(stderr, exec.Status(err), fmt.Errorf("cannot run %s for %s: %w (%s)", name, r.Mode, err, r), hint)
}

func fail(stderr io.Writer, status int, err error, hint string) int {
	fmt.Fprintf(stderr, "iptables-wrapper: %v\n", err)
	if hint != "" {
		fmt.Fprintf(stderr, "iptables-wrapper: try: %s\n", hint)
	}
	return status
}

// debug says in one line what the wrapper does, if IPTABLES_WRAPPER_DEBUG is set.
func debug(p self.Process, stderr io.Writer, r detect.Result, stored layout.Stored, program string) {
	if value := process.Variable("IPTABLES_WRAPPER_DEBUG"); value != "1" && value != "true" || !p.Trusted() {
		return
	}
	switched := "the switch was replaced"
	if stored.Unmoved != nil {
		switched = fmt.Sprintf("the switch was not replaced (%v)", stored.Unmoved)
	}
	fmt.Fprintf(stderr, "iptables-wrapper: %s [%s]; %s; running %s\n", r, r.Reason, switched, program)
}
