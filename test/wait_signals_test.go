// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A signal ends the wait at once, by the status that a shell gives it, also as the first process of a container: the
// kernel keeps signals from that which it does not ask for.
func TestWaitEndsBySignal(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	for signal, want := range map[unix.Signal]int{unix.SIGTERM: 143, unix.SIGINT: 130} {
		for _, first := range []bool{false, true} {
			args := []string{"iptables-wrapper", "detect", "--wait", "10m"}
			if first {
				args = append([]string{"unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"}, args...)
			}
			cmd, _, _ := startWaiting(t, args[0], args[1:]...)
			pid := cmd.Process.Pid
			if first {
				pid = onlyChild(t, pid)
			}
			if err := unix.Kill(pid, signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%v, first process %v: status %d, want %d", signal, first, got, want)
			}
		}
	}
}

// After the wait a signal ends the process by itself, here while it waits for the lock of the links.
func TestSignalAfterWait(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	dir, err := os.Open("/usr/sbin")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	cmd, _, stderr := startWaiting(t, "iptables-wrapper", "select", "--wait", "10m")
	host.Run(t, "iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	if line, _ := stderr.ReadString('\n'); !strings.HasPrefix(line, "iptables-wrapper: found: legacy") {
		t.Errorf("got %q", line)
	}
	if err := unix.Kill(cmd.Process.Pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != unix.SIGTERM {
		t.Errorf("it ended with status %d, and by no signal", got.ExitStatus())
	}
}

// What the caller has it ignore does not end it.
func TestWaitIgnores(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	for ignored, other := range map[unix.Signal]unix.Signal{unix.SIGTERM: unix.SIGINT, unix.SIGINT: unix.SIGTERM} {
		name := map[unix.Signal]string{unix.SIGTERM: "TERM", unix.SIGINT: "INT"}[ignored]
		cmd, _, _ := startWaiting(t, "sh", "-c", "trap '' "+name+"; exec iptables-wrapper detect --wait 10m")
		if err := unix.Kill(cmd.Process.Pid, ignored); err != nil {
			t.Fatal(err)
		}
		// Both at once would be delivered in the order of their numbers. The first has done what it does when there is none left.
		for signalPending(t, cmd.Process.Pid) {
			runtime.Gosched()
		}
		if err := unix.Kill(cmd.Process.Pid, other); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 128+int(other) {
			t.Errorf("%s was ignored, and it ended with %d", name, got)
		}
	}
}

// signalPending reports whether a signal waits to be delivered to a process.
func signalPending(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	pending := regexp.MustCompile(`(?m)^ShdPnd:\s*(\w+)$`).FindSubmatch(status)
	return pending != nil && strings.Trim(string(pending[1]), "0") != ""
}

func onlyChild(t *testing.T, pid int) int {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}
