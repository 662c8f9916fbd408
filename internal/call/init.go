// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package call is a wrapped call: it asks the kernel which backend the host uses, stores the answer as far as it may,
// and execs that backend's program.
package call

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// init runs a wrapped call, before main. Go initializes packages in the order of their import paths, so what the
// command line needs (github.com/urfave/cli/v2 and the packages that it brings in) has not been initialized yet: that
// would cost each call 0.16 ms and 48 page faults. TestEarly in test/ checks that it stays that way. Called by any other
// name, init leaves the rest to main.
//
// Go runs init functions on the process' first thread, and execve has to be called there: what belongs to that thread,
// such as PR_SET_PDEATHSIG, survives.
func init() {
	if len(os.Args) > 0 && slices.Contains(exec.Names(), filepath.Base(os.Args[0])) {
		os.Exit(run(os.Args, os.Stderr))
	}
}
