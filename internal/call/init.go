// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, keeps the answer if it may, and execs
// that backend's program.
package call

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
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
		os.Exit(run(os.Args, os.Environ(), os.Stderr))
	}
	runtime.LockOSThread() // starts one more thread, so only the command line does it
}
