// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, keeps the answer if it may, and execs
// that backend's program.
package call

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// init runs a wrapped call, before main. If the process was called by another name, init leaves the rest to main.
//
// Go initializes packages in the order of their import paths, each after the packages that it imports. So packages that
// only the command line needs, such as github.com/urfave/cli/v2, are not initialized yet. They would cost each call
// 0.16 ms and 48 page faults. TestEarly in test/program checks the order.
//
// Go runs init functions on the process's first thread. execve(2) must be called there, so that PR_SET_PDEATHSIG and
// other attributes of that thread survive. The command line stays there, too: before Linux 3.17, /proc shows the
// network of no other thread.
func init() {
	if len(os.Args) > 0 && slices.Contains(exec.Commands(), filepath.Base(os.Args[0])) {
		os.Exit(run(filepath.Base(os.Args[0])))
	}
	runtime.LockOSThread() // starts one more thread, so only the command line does it
}

// run makes a wrapped call of a command. It returns only if the program cannot be executed: the exit status, after it
// has printed what failed and what to do.
func run(command string) int {
	err := become(command)
	status, try := remedy.For(err)
	what := strings.ReplaceAll(err.Error(), "\n", "; ") // line ends are those of errors.Join
	try = cmp.Or(try, remedy.Unknown)
	fmt.Fprintf(os.Stderr, "iptables-wrapper: cannot run %s: %s\niptables-wrapper: try: %s\n", command, what, try)
	return status
}

// become becomes the program that the plan of this call names. It returns only an error.
func become(command string) error {
	running, err := os.Readlink(file.Running)
	seen := plan.Seen{
		SetUID:   unix.Getuid() != unix.Geteuid(),
		Variable: os.Getenv(plan.Variable),
		NoProc:   err,
		Find: func(b detect.Backend) (exec.Program, error) {
			return exec.Find(b, command, filepath.Dir(running))
		},
	}
	p, isSettled := plan.Settled(seen)
	if !isSettled {
		p = decide(seen, running)
	}
	if p.Err != nil {
		return p.Err
	}
	err = exec.Become(exec.Program{Path: p.Program}, os.Args, os.Environ())
	return fmt.Errorf("%w (%s)", err, p.Because())
}

// decide asks the kernel, keeps the answer if it may, and returns the plan with what is kept then.
func decide(seen plan.Seen, running string) plan.Plan {
	own, dirErr := link.OpenRunning(running)
	record, recordErr := link.OpenRecord()
	seen.Recorded = record.Read()
	r, hostErr := detect.Host(seen.Recorded)
	seen.Evidence = r.Evidence
	seen.Failed = errors.Join(dirErr, recordErr, hostErr)
	p := plan.Of(seen)
	if p.How != plan.Asked {
		return p
	}
	if unix.Geteuid() != 0 || hostErr != nil && !p.Certain {
		own = nil // condition 1 of Keep
	}
	kept := link.Keep(own, record, p.Backend, p.Program, p.Certain)
	switch {
	case kept == p.Backend:
		return p
	case p.Certain: // meanwhile, another call has pointed the switch at the other backend's program
		seen.Stored = kept
	default: // or recorded that backend
		seen.Recorded = kept
	}
	return plan.Of(seen)
}
