// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals && !mips && !mipsle && !mips64 && !mips64le

package exec

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Which signals are ignored and which are blocked goes through execve(2) from the caller to the program: SIGPIPE is
// ignored under systemd, SIGTERM in a script that says so. But the Go runtime takes over all signals at its start and
// unblocks those that it needs. Execve puts what was taken over to its default, so the program would die of what it was
// told to ignore; and a signal that comes before execve would be swallowed, or end in a Go traceback, instead of ending
// the process. What was there before, the runtime keeps in two variables, and tells nobody. So we read them there.
//
// The environment goes through too. The runtime keeps it to the last byte; os.Environ leaves out what is empty, and of what
// stands twice all but the first.
//
// The linker allows that with -checklinkname=0 only. A build without the tag needs no leave, and differs in what is in this
// file alone.

// runtimeFwdSig has the disposition of each signal, SIG_DFL or SIG_IGN after execve: initsig in runtime/signal_unix.go.
//
//go:linkname runtimeFwdSig runtime.fwdSig
var runtimeFwdSig [65]uintptr

// runtimeInitSigmask is the first thread's signal mask, in the kernel's layout: schedinit in runtime/proc.go.
//
//go:linkname runtimeInitSigmask runtime.initSigmask
var runtimeInitSigmask [2]uint32

// environment is what execve(2) gave this process.
func environment() []string { return runtimeEnvironment() }

//go:linkname runtimeEnvironment syscall.runtime_envs
func runtimeEnvironment() []string

// LockThread keeps the calling goroutine on its thread, as runtime.LockOSThread does. That one also starts a thread to
// make others from, for the case that this one is changed before there are more: it costs more than asking nf_tables. We
// change nothing that others could inherit, so the runtime's own lock will do.
func LockThread() { runtimeLockOSThread() }

//go:linkname runtimeLockOSThread runtime.lockOSThread
func runtimeLockOSThread()

// ReleaseSignals takes every signal back from the runtime: each does what it would have done to the program itself. It
// is for the way to Become, where nothing needs them; the runtime's preemption does without.
//
// What the caller blocks and the runtime has unblocked would now end the process. It is ignored until Become.
func ReleaseSignals() {
	blocked := signalMask()
	unblocked := unblockedSignals(blocked)
	for number, disposition := range runtimeFwdSig {
		switch unix.Signal(number) {
		case unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
			continue // the runtime leaves them alone (_SigDefault in its sigtable), and keeps nothing about them
		}
		switch {
		case has(unblocked, number):
			disposition = sigIgn
		case has(blocked, number) && disposition == sigDfl:
			continue // it cannot come before execve, which does this too, and keeps one that is waiting
		}
		setDisposition(number, disposition) // it fails for SIGKILL, SIGSTOP and 0, where there is nothing to take back
	}
}

// Ignored says whether the caller had this process ignore a signal.
func Ignored(s unix.Signal) bool { return runtimeFwdSig[s] == sigIgn }

// restoreSignals blocks on this thread what was blocked when the process was started, and ends what ReleaseSignals did
// for that.
func restoreSignals() {
	unblocked := unblockedSignals(signalMask())
	mask := initialMask()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil)
	for number, disposition := range runtimeFwdSig {
		if has(unblocked, number) {
			setDisposition(number, disposition)
		}
	}
}

// signalMask is this thread's.
func signalMask() (now unix.Sigset_t) {
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, nil, &now) // it fails for a wrong argument only
	return now
}

// unblockedSignals are those that were blocked when the process was started, and are not now. The two that the runtime
// leaves to the C library are none of them.
func unblockedSignals(now unix.Sigset_t) unix.Sigset_t {
	set := initialMask()
	for i := range set.Val {
		set.Val[i] &^= now.Val[i]
	}
	for _, number := range []int{32, 33} {
		word, bit := place(number)
		set.Val[word] &^= 1 << bit
	}
	return set
}

func initialMask() unix.Sigset_t {
	var mask unix.Sigset_t
	*(*[2]uint32)(unsafe.Pointer(&mask)) = runtimeInitSigmask
	return mask
}

func has(set unix.Sigset_t, number int) bool {
	word, bit := place(number)
	return number > 0 && set.Val[word]>>bit&1 == 1
}

// place is where a signal is in a set: an array of words in which signal 1 is the lowest bit.
func place(number int) (word, bit int) {
	const bits = int(unsafe.Sizeof(unix.Sigset_t{}.Val[0])) * 8
	return max(number-1, 0) / bits, max(number-1, 0) % bits
}

func setDisposition(number int, disposition uintptr) {
	// The kernel's struct sigaction begins with the handler (on mips it does not); all else is 0 here.
	action := [8]uintptr{disposition}
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(&action)), 0, sizeofSigset, 0, 0)
}

const (
	sigDfl, sigIgn = 0, 1 // SIG_DFL, SIG_IGN
	sizeofSigset   = 8
)
