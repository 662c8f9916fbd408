// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The program is the process that was called, so a signal reaches it, and the caller sees it die of it.
func TestDeathBySignal(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	hostWithHint(t, "legacy")
	readOnly(t)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGKILL, unix.SIGQUIT, unix.SIGUSR1, unix.SIGPIPE} {
		w := wait(t, call("legacy", true, "iptables-restore"))
		if err := w.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := w.cmd.Wait()
		if ws := w.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != signal {
			t.Errorf("%v: ended with %v", signal, err)
		}
	}
}

// A signal that comes before the program has been reached does what it would have done to the program. The wrapper is
// held where it reads the list of legacy tables, which is a pipe here.
func TestSignalBeforeTheProgram(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	hold := func(with ...string) (cmd *exec.Cmd, release func()) {
		const list = "/proc/thread-self/net/ip_tables_names"
		args := append([]string{"--mount", "sh", "-ec",
			"mount -t tmpfs none /proc; mkdir -p ${0%/*}; mkfifo $0; exec \"$@\"", list}, append(with, "/usr/sbin/iptables", "--version")...)
		cmd = exec.Command("unshare", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, list)
		for {
			// Nobody can open it to write until the wrapper reads.
			pipe, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
			if err == nil {
				return cmd, func() {
					// The list is read again for the second look at the hints: it is an empty file by then, if the process lives.
					if os.Remove(path) == nil {
						_ = os.WriteFile(path, nil, 0o444)
					}
					pipe.Close()
				}
			}
			if !processRuns(cmd.Process.Pid) {
				t.Fatalf("%s: %v", cmd, cmd.Wait())
			}
			runtime.Gosched()
		}
	}
	for _, signal := range []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGUSR1,
		unix.SIGSEGV, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGXCPU, unix.SIGXFSZ,
		unix.SIGVTALRM, unix.SIGPROF, unix.SIGIO, unix.SIGPWR, unix.SIGSYS,
	} {
		cmd, release := hold()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != signal {
			t.Errorf("%v: ended with %v", signal, err)
		}
		release()
	}
	// Ignored ones do nothing, and those whose default is to do nothing.
	cmd, release := hold("env", "--ignore-signal=HUP,INT,QUIT,TERM,USR1,ALRM,PIPE,SEGV,RTMAX")
	for _, signal := range []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGALRM, unix.SIGPIPE, unix.SIGSEGV, 64,
		unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH, unix.SIGCONT,
	} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	release()
	if err := cmd.Wait(); err != nil {
		t.Errorf("with signals that do nothing: %v", err)
	}
	// Blocked ones do not end it.
	cmd, release = hold("env", "--block-signal=HUP,INT,QUIT,ABRT,TERM,CHLD,USR1,RTMAX")
	for _, signal := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTERM, unix.SIGCHLD, unix.SIGUSR1, 64} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	release()
	if err := cmd.Wait(); err != nil {
		t.Errorf("with signals that are blocked: %v", err)
	}
}

// PR_SET_PDEATHSIG belongs to a thread. It survives only if the first thread is the one that calls execve.
func TestParentDeathSignal(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	hostWithHint(t, "nft")
	readOnly(t)
	for range 20 {
		cmd := call("nft", true, "iptables-restore")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGUSR1}
		var w waiting
		parent := make(chan int)
		var start func()
		start = func() {
			runtime.LockOSThread() // the thread ends with this function, and is the parent
			if unix.Gettid() == os.Getpid() {
				// All but this one, which Go never ends. As long as it is taken, the next is another.
				done := make(chan struct{})
				go func() { start(); close(done) }()
				<-done
				return
			}
			w = wait(t, cmd)
			parent <- unix.Gettid()
		}
		go start()
		thread := fmt.Sprintf("/proc/self/task/%d", <-parent)
		for _, err := os.Stat(thread); err == nil; _, err = os.Stat(thread) {
			runtime.Gosched()
		}
		w.stdin.Close() // without the signal it ends by itself
		err := cmd.Wait()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGUSR1 {
			t.Fatalf("ended with %v", err)
		}
	}
}
