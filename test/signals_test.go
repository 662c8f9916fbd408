// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// moments are system calls on the first thread of a wrapped call, in their order. Strace sends a signal there.
var moments = []struct{ doc, call string }{
	{"when the Go runtime starts", "sched_getaffinity"},
	{"just after the runtime's handlers would have been installed", "clone"}, // of its second thread
	{"when it asks the kernel", "socket"},
}

// A signal at any moment of a wrapped call does what it does to iptables: it ends the process without a word, unless the
// caller ignores or blocks it. The Go runtime would swallow some and print a traceback for others.
func TestSignalAtStart(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	hostWithHint(t, "legacy")
	readOnly(t)
	// send returns how a call ended, and whether there was such a moment.
	send := func(path string, signal unix.Signal, moment string, with ...string) (syscall.WaitStatus, string, bool) {
		file := filepath.Join(t.TempDir(), "trace")
		inject := fmt.Sprintf("inject=%s:signal=%d:when=1", moment, signal)
		args := slices.Concat([]string{"-qq", "-o", file, "-e", inject}, with, []string{path, "--version"})
		cmd := exec.Command("strace", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		return cmd.ProcessState.Sys().(syscall.WaitStatus), stderr.String(), strings.Contains(host.Run(t, "cat", file), moment+"(")
	}
	const iptables = "/usr/sbin/iptables"
	for _, moment := range moments {
		for _, signal := range []unix.Signal{
			unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGUSR1,
			unix.SIGSEGV, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGXCPU, unix.SIGXFSZ,
			unix.SIGVTALRM, unix.SIGPROF, unix.SIGIO, unix.SIGPWR, unix.SIGSYS, 34, 40, 64,
		} {
			ws, stderr, sent := send(iptables, signal, moment.call)
			if !sent || !ws.Signaled() || ws.Signal() != signal || stderr != "" {
				t.Errorf("%v %s: sent %v, signal %v, status %d, %q", signal, moment.doc, sent, ws.Signal(), ws.ExitStatus(), stderr)
			}
		}
		for _, signal := range []unix.Signal{unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH} {
			if ws, stderr, sent := send(iptables, signal, moment.call); !sent || ws != 0 || stderr != "" {
				t.Errorf("%v %s: sent %v, ended with %#x, %q", signal, moment.doc, sent, ws, stderr)
			}
		}
		for _, signal := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGPIPE, unix.SIGTERM, unix.SIGIO, 64} {
			for _, how := range []string{"ignore", "block"} {
				ws, stderr, sent := send(iptables, signal, moment.call, "env", fmt.Sprintf("--%s-signal=%d", how, signal))
				if !sent || ws != 0 || stderr != "" {
					t.Errorf("%v, with env --%s-signal, %s: sent %v, ended with %#x, %q", signal, how, moment.doc, sent, ws, stderr)
				}
			}
		}
	}
}

// A standard descriptor that is closed stays closed. In a command it is not left to the next file that is opened.
func TestClosedDescriptors(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	hostWithHint(t, "legacy")
	readOnly(t)
	host.Run(t, "mount", "--bind", "/usr/bin/ls", legacyProgram)
	const closed = " /proc/self/fd <&- 2>&-"
	if direct, wrapped := host.Run(t, "sh", "-c", "ls"+closed), host.Run(t, "sh", "-c", "iptables"+closed); direct != wrapped {
		t.Errorf("open in a program: %q directly, %q with the wrapper", direct, wrapped)
	}
	for before, want := range map[string]string{
		"true":                           `write\(1</dev/null.*>, "iptables-wrapper version .*\) = [1-9]`,
		"mount -t tmpfs none /dev":       `write\(1</>, "iptables-wrapper version .*\) = -1 EBADF`,
		"umount /proc; umount /sys/fs/*": `write\(1</dev/null.*>, "iptables-wrapper version .*\) = [1-9]`, // the runtime opens no limits
	} {
		file := filepath.Join(t.TempDir(), "trace")
		_ = exec.Command("strace", "-f", "-y", "-o", file, "-e", "trace=write", "unshare", "--mount", "sh", "-c",
			before+"; exec iptables-wrapper version <&- >&-").Run()
		if trace := host.Run(t, "cat", file); len(matching(strings.Split(trace, "\n"), want)) != 1 {
			t.Errorf("after %q: %s", before, trace)
		}
	}
}
