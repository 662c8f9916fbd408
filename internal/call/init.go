// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, keeps the answer as far as it may, and
// execs that backend's program.
package call

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// init runs a wrapped call, before main. Called by any other name, it leaves the rest to main.
//
// Go initializes packages in the order of their import paths, as soon as all that they import are initialized. So
// packages that only the command line needs, such as github.com/urfave/cli/v2, are not initialized yet. That would cost
// each call 0.16 ms and 48 page faults. TestEarly in test/program checks the order.
//
// Go runs init functions on the process's first thread, and main, too, if it is locked here. execve(2) must be called
// there, so that what belongs to that thread survives, such as PR_SET_PDEATHSIG, and /proc/self is about it.
func init() {
	if len(os.Args) > 0 && slices.Contains(exec.Names(), filepath.Base(os.Args[0])) {
		os.Exit(run(os.Args, os.Environ(), os.Stderr))
	}
	runtime.LockOSThread() // which starts one more thread, so a call does without
}
