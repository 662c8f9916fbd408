// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, makes the commands point to that backend's
// program as far as the answer may be kept, and execs the program.
package call

import (
	"errors"
	"fmt"
	"io"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// wrap detects the backend, remembers and keeps it as far as it may, and execs its program. It returns an exit status, and
// only if that fails.
func wrap(w links.Wrapper, argv []string, stderr io.Writer) int {
	name := programs.Base(argv[0])
	override, err := w.Override()
	if err != nil {
		return fail(stderr, 2, err, "")
	}
	paths, errs, only := w.FindBoth(programs.Dir(w.Called), name)
	q := detect.Query{Override: override, Installed: only}
	var container links.Container
	var memory links.Memory
	if override == "" {
		container = w.Container()
		memory = w.Memory(container)
		q.Remembered = usable(memory.Mode(), errs)
		q.DryRun = programs.Adds(argv)
		q.NAT = q.DryRun && programs.NeedsNAT(argv)
	}

	r := q.Run()
	if errs[r.Mode] != nil {
		return cannotRun(stderr, name, r, errs[r.Mode])
	}
	kept := w.Keep(links.Answer{Result: r, Adds: q.DryRun, Program: paths[r.Mode]}, container, memory)
	if m := usable(kept.Mode, errs); m != "" && m != r.Mode { // another call was first
		r = detect.Result{Mode: m, Reason: detect.Remembered, Evidence: r.Evidence}
	}
	debug(w, stderr, r, kept, paths[r.Mode])
	if err = errs[r.Mode]; err == nil {
		err = exec.Become(paths[r.Mode], argv)
	}
	kept.Undo()
	return cannotRun(stderr, name, r, err)
}

// usable returns a remembered backend, "" if its program is missing: then the other rows of the decision apply.
func usable(m detect.Mode, errs map[detect.Mode]error) detect.Mode {
	if errors.Is(errs[m], exec.ErrMissing) {
		return ""
	}
	return m
}

// cannotRun says why the backend that the evidence asks for does not run. The other backend would be no substitute: the
// host would not see its rules.
func cannotRun(stderr io.Writer, name string, r detect.Result, err error) int {
	hint := fmt.Sprintf("install the %s version of iptables in this image; if the mode is wrong, set IPTABLES_WRAPPER_MODE", r.Mode)
	if errors.Is(err, exec.ErrRecursion) {
		hint = "that file is the wrapper itself: restore iptables' own program there"
	}
	return fail(stderr, exec.Status(err), fmt.Errorf("cannot run %s for %s: %w (%s)", name, r.Mode, err, r), hint)
}

func fail(stderr io.Writer, status int, err error, hint string) int {
	fmt.Fprintf(stderr, "iptables-wrapper: %v\n", err)
	if hint != "" {
		fmt.Fprintf(stderr, "iptables-wrapper: hint: %s\n", hint)
	}
	return status
}

// debug says in one line what the wrapper does, if IPTABLES_WRAPPER_DEBUG is set.
func debug(w links.Wrapper, stderr io.Writer, r detect.Result, kept links.Kept, program string) {
	if value := process.Variable("IPTABLES_WRAPPER_DEBUG"); value != "1" && value != "true" || !w.Trusted() {
		return
	}
	switched := "the switch was replaced"
	if kept.Why != nil {
		switched = fmt.Sprintf("the switch was not replaced (%v)", kept.Why)
	}
	fmt.Fprintf(stderr, "iptables-wrapper: %s [%s]; %s; running %s\n", r, r.Reason, switched, program)
}
