// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals

package exec

import (
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Which signals are ignored and which are blocked goes through execve(2) from the caller to the program: SIGPIPE is
// ignored under systemd, SIGTERM in a script that says so. But the Go runtime takes over all signals at its start and
// unblocks those that it needs, and execve puts what was taken over to its default: the program would die of what it was
// told to ignore. What was there before, the runtime keeps in two variables, and tells nobody. So we read them there.
//
// The linker allows that with -checklinkname=0 only. A build without the tag needs no leave, and differs in this alone.

// runtimeFwdSig has the disposition of each signal: initsig in runtime/signal_unix.go.
//
//go:linkname runtimeFwdSig runtime.fwdSig
var runtimeFwdSig [65]uintptr

// runtimeInitSigmask is the first thread's signal mask, in the kernel's layout: schedinit in runtime/proc.go.
//
//go:linkname runtimeInitSigmask runtime.initSigmask
var runtimeInitSigmask [2]uint32

const sigIgn = 1 // SIG_IGN

// restoreSignals makes the signals of this thread as they were when the process was started.
func restoreSignals() {
	for number, disposition := range runtimeFwdSig {
		if disposition == sigIgn {
			signal.Ignore(syscall.Signal(number))
		}
	}
	var mask unix.Sigset_t
	*(*[2]uint32)(unsafe.Pointer(&mask)) = runtimeInitSigmask
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil) // it fails for a wrong argument only
}
