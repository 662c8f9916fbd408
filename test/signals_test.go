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
		host.Check(t, cmd.Start())
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
		host.Check(t, cmd.Process.Signal(signal))
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
		host.Check(t, cmd.Process.Signal(signal))
	}
	release()
	if err := cmd.Wait(); err != nil {
		t.Errorf("with signals that do nothing: %v", err)
	}
	// Blocked ones do not end it.
	cmd, release = hold("env", "--block-signal=HUP,INT,QUIT,ABRT,TERM,CHLD,USR1,RTMAX")
	for _, signal := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTERM, unix.SIGCHLD, unix.SIGUSR1, 64} {
		host.Check(t, cmd.Process.Signal(signal))
	}
	release()
	if err := cmd.Wait(); err != nil {
		t.Errorf("with signals that are blocked: %v", err)
	}
}
