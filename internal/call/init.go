// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// marker is in the executable of every version of the wrapper, and in no other program.
const marker = "iptables-wrapper marker 7d3f6c0e-5a51-4f3b-9a1e-1f6d2c8b0e47"

// init runs a wrapped call, before main. Go initializes packages in the order of their import paths, so what the
// command line needs (github.com/urfave/cli/v2 and the regexp, text/template and net/netip packages that it brings
// in) has not been initialized yet: that would cost each call 0.16 ms and 64 page faults. TestEarly in test/ checks
// that it stays that way. Called by any other name, init leaves the rest to main.
func init() {
	// What belongs to the first thread, such as PR_SET_PDEATHSIG, survives only if that thread calls execve. A
	// command stays on it too: until it asks for that itself, in command.Run, a busy machine could move it to
	// another one.
	process.LockThread()
	argv := self.Arguments()
	if programs.IsName(programs.Base(argv[0])) {
		growStack(len(argv))
		os.Exit(wrap(Wrapper(), argv, os.Stderr))
	}
	process.FinishStart()
}

// growStack gives this goroutine a stack of 32 KiB. Left alone, Go doubles it whenever a call does not fit, and
// sets up a pool of stacks of each size on the way: ten page faults more. A large frame is enough; nothing in it is
// used.
//
//go:noinline
func growStack(arguments int) byte {
	if arguments > 0 {
		return 0
	}
	var frame [16 << 10]byte
	return frame[len(os.Args)]
}

// Wrapper returns the running wrapper.
func Wrapper() self.Process { return self.Started(marker) }
