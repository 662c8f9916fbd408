// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals && !mips && !mipsle && !mips64 && !mips64le

// Package process passes on through execve(2) what the Go runtime would otherwise change: signals, and the
// environment to the last byte.
//
// Left alone, the runtime installs a handler for each signal, long before any code of ours runs. One that arrives
// while a wrapped call decides would be swallowed, or end in a Go traceback, and execve would reset what the caller
// ignores, such as SIGPIPE under systemd, to its default. So the wrapper starts without handlers, as a C library
// that is written in Go does: package call says how. Then every signal does to it what it would have done to the
// program, from the first instruction on.
//
// The linker allows that only with -checklinkname=0. A build without the tag needs no such flag, and differs only
// in what this file and its neighbour in package call do.
package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// runtimeIsLibrary keeps the runtime's hands off signals and standard descriptors. Package call sets it when it is
// linked.
//
//go:linkname runtimeIsLibrary runtime.islibrary
var runtimeIsLibrary bool

//go:linkname runtimeInstallHandlers runtime.initsig
func runtimeInstallHandlers(beforeStart bool)

// runtimeFwdSig holds the disposition that each signal had, SIG_DFL or SIG_IGN, before the runtime installed its
// handler.
//
//go:linkname runtimeFwdSig runtime.fwdSig
var runtimeFwdSig [65]uintptr

// runtimeInitSigmask is the first thread's signal mask, in the kernel's layout: schedinit in runtime/proc.go.
//
//go:linkname runtimeInitSigmask runtime.initSigmask
var runtimeInitSigmask [2]uint32

// Environment returns the environment as execve(2) passed it. os.Environ drops empty strings and all but the first of
// several variables with one name.
//
//go:linkname Environment syscall.runtime_envs
func Environment() []string

// Variable returns a variable of the environment, "" if it is not set. os.Getenv would first put all of them into a
// map.
func Variable(name string) string {
	for _, entry := range Environment() {
		if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
			return entry[len(name)+1:]
		}
	}
	return ""
}

// LockThread keeps the calling goroutine on its thread, as runtime.LockOSThread does. That function also starts a
// template thread, in case the locked thread's state changes before others are started. The wrapper changes nothing
// that other threads could inherit, and starting a thread costs more than asking nf_tables.
//
//go:linkname LockThread runtime.lockOSThread
func LockThread()

// FinishStart makes up for what the runtime left out when it started, because a command is an ordinary Go program:
// handlers for signals, and something in the place of a standard descriptor that is closed, where the next file to
// be opened would receive what is meant for stdout. Main is called only after it.
func FinishStart() {
	if !runtimeIsLibrary {
		return
	}
	runtimeIsLibrary = false
	runtimeInstallHandlers(false)
	for fd := range 3 {
		// No descriptor passes execve(2) with FD_CLOEXEC: such a one is the runtime's, which reads the limits of
		// the cgroup.
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		inherited := err == nil && flags&unix.FD_CLOEXEC == 0
		if inherited {
			continue
		}
		null, err := unix.Open("/dev/null", unix.O_RDWR, 0)
		if err != nil {
			null, _ = unix.Open("/", unix.O_PATH, 0)
		}
		if null != fd {
			_ = unix.Dup3(null, fd, 0)
			_ = unix.Close(null)
		}
	}
}

// Ignored reports whether the caller made this process ignore the signal. It can tell only after FinishStart.
func Ignored(s unix.Signal) bool { return runtimeFwdSig[s] == 1 /* SIG_IGN */ }

// RestoreMask blocks on this thread the signals that were blocked when the process started. The runtime unblocks
// some of them on each of its threads (_SigUnblock in its sigtable), so until execve these act as if they had not
// been blocked.
func RestoreMask() {
	if runtimeInitSigmask == [2]uint32{} {
		return
	}
	var mask unix.Sigset_t
	*(*[2]uint32)(unsafe.Pointer(&mask)) = runtimeInitSigmask
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil) // fails only for a wrong argument
}
