// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals && !mips && !mipsle && !mips64 && !mips64le

// Package process passes on through execve(2) what the Go runtime would otherwise change: ignored and blocked signals,
// and the environment to the last byte.
//
// A caller's ignored and blocked signals survive execve: SIGPIPE is ignored under systemd, SIGTERM in a script that says
// so. The Go runtime installs handlers for all signals when it starts and unblocks those that it needs. Execve resets a
// handled signal to its default, so the program would die of a signal that it was told to ignore. And a signal that
// arrives before execve would be swallowed, or end in a Go traceback. The runtime keeps the original state in two
// variables that it does not export; this package reads them there.
//
// The linker allows that only with -checklinkname=0. A build without the tag needs no such flag, and differs only in what
// this file does.
package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// runtimeFwdSig holds each signal's disposition, SIG_DFL or SIG_IGN after execve: initsig in runtime/signal_unix.go.
//
//go:linkname runtimeFwdSig runtime.fwdSig
var runtimeFwdSig [65]uintptr

// runtimeInitSigmask is the first thread's signal mask, in the kernel's layout: schedinit in runtime/proc.go.
//
//go:linkname runtimeInitSigmask runtime.initSigmask
var runtimeInitSigmask [2]uint32

// Environment returns the environment as execve(2) passed it. os.Environ drops empty strings and all but the first of
// several variables with one name.
func Environment() []string { return runtimeEnvironment() }

//go:linkname runtimeEnvironment syscall.runtime_envs
func runtimeEnvironment() []string

// Variable returns a variable of the environment, "" if it is not set. os.Getenv would first put all of them into a map.
func Variable(name string) string {
	for _, entry := range runtimeEnvironment() {
		if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
			return entry[len(name)+1:]
		}
	}
	return ""
}

// LockThread keeps the calling goroutine on its thread, as runtime.LockOSThread does. That function also starts a
// template thread, in case the locked thread's state changes before others are started. The wrapper changes nothing that
// other threads could inherit, and starting a thread costs more than asking nf_tables.
func LockThread() { runtimeLockOSThread() }

//go:linkname runtimeLockOSThread runtime.lockOSThread
func runtimeLockOSThread()

// ReleaseSignals takes the signals back from the runtime, so that each does to the wrapper what it would have done to the
// program. Call it only where Become follows: nothing there needs the handlers, and the runtime's preemption does without.
//
// A signal that the caller blocks and the runtime has unblocked would now end the process, so it is ignored until
// RestoreSignals. Real-time signals (34 and up) are left to the runtime, which swallows them until execve, unless the
// caller ignores them: resetting them would double the system calls here, and nobody sends one to iptables.
func ReleaseSignals() {
	blocked := signalMask()
	unblocked := unblockedSignals(blocked)
	for number, disposition := range runtimeFwdSig {
		switch unix.Signal(number) {
		case unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
			continue // the runtime installs no handler for them (_SigDefault in its sigtable)
		}
		switch {
		case isSet(unblocked, number):
			disposition = sigIgn
		case disposition != sigDfl: // ignored
		case number >= firstRealTime, isSet(blocked, number):
			continue // a blocked signal cannot arrive before execve, which resets its handler and keeps it pending
		}
		setDisposition(number, disposition) // fails for 0, SIGKILL and SIGSTOP, which need no reset
	}
}

// Ignored reports whether the caller made this process ignore the signal.
func Ignored(s unix.Signal) bool { return runtimeFwdSig[s] == sigIgn }

// RestoreSignals blocks on this thread what was blocked when the process started, and undoes what ReleaseSignals did for
// those signals.
func RestoreSignals() {
	unblocked := unblockedSignals(signalMask())
	mask := initialMask()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil) // fails only for a wrong argument
	for number, disposition := range runtimeFwdSig {
		if isSet(unblocked, number) {
			setDisposition(number, disposition)
		}
	}
}

// signalMask returns this thread's signal mask.
func signalMask() uint64 {
	var now unix.Sigset_t
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, nil, &now) // fails only for a wrong argument
	return bits(now)
}

// unblockedSignals returns the signals that were blocked when the process started and are not blocked now. Signals 32 and
// 33 belong to the C library; the runtime leaves them alone.
func unblockedSignals(now uint64) uint64 { return bits(initialMask()) &^ now &^ (1<<31 | 1<<32) }

func initialMask() unix.Sigset_t {
	var mask unix.Sigset_t
	*(*[2]uint32)(unsafe.Pointer(&mask)) = runtimeInitSigmask
	return mask
}

// bits returns the first 64 signals of a set, of which signal 1 is the lowest bit.
func bits(set unix.Sigset_t) (n uint64) {
	const size = int(unsafe.Sizeof(set.Val[0])) * 8
	for i := range 64 / size {
		n |= uint64(set.Val[i]) << (i * size)
	}
	return n
}

func isSet(set uint64, number int) bool { return number > 0 && set>>(number-1)&1 == 1 }

func setDisposition(number int, disposition uintptr) {
	// The kernel's struct sigaction begins with the handler (except on mips); the rest is 0 here.
	action := [8]uintptr{disposition}
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(&action)), 0, sizeofSigset, 0, 0)
}

const (
	sigDfl, sigIgn = 0, 1 // SIG_DFL, SIG_IGN
	sizeofSigset   = 8
	firstRealTime  = 34
)
