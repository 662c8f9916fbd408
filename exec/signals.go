// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals

package exec

import (
	"os/signal"
	"syscall"
	_ "unsafe" // for go:linkname
)

// A signal that the caller ignores (SIGPIPE under systemd, SIGTERM in a script that traps it) stays ignored through execve(2). But the
// Go runtime takes over all signals at its start, and execve then puts those to their default: the program would die
// of what it was told to ignore. Only SIGHUP and SIGINT are left as they were (initsig in runtime/signal_unix.go). What
// was there before is kept in one variable of the runtime and told to nobody, so we read it there.
//
// The linker allows that with -checklinkname=0 only. A build without it and without the tag works in all other ways.
//
//go:linkname runtimeFwdSig runtime.fwdSig
var runtimeFwdSig [65]uintptr

const sigIgn = 1 // SIG_IGN

// ignoreAgain ignores the signals that were ignored when this process was started.
func ignoreAgain() {
	for number, disposition := range runtimeFwdSig {
		if disposition == sigIgn {
			signal.Ignore(syscall.Signal(number))
		}
	}
}
