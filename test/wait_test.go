// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// waiting is a command that waits for evidence.
type waiting struct {
	*exec.Cmd
	stdout, stderr *bufio.Reader
}

// startWaiting starts a command that waits, and returns when it does.
func startWaiting(t *testing.T, args ...string) waiting {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	stdout, err := cmd.StdoutPipe()
	host.Check(t, err)
	stderr, err := cmd.StderrPipe()
	host.Check(t, err)
	host.Check(t, cmd.Start())
	w := waiting{cmd, bufio.NewReader(stdout), bufio.NewReader(stderr)}
	if line, _ := w.stderr.ReadString('\n'); !strings.HasPrefix(line, "iptables-wrapper: waiting up to ") {
		t.Errorf("it does not say what it waits for: %q", line)
	}
	return w
}

// Evidence that comes during the wait ends it.
func TestWait(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	found := func(t *testing.T, mode, command string, evidence string) {
		t.Helper()
		w := startWaiting(t, "iptables-wrapper", command, "--wait", "10m")
		host.Run(t, "sh", "-c", evidence)
		told, answer := readAll(w.stderr), readAll(w.stdout)
		if err := w.Wait(); err != nil || answer != mode+"\n" || !strings.HasPrefix(told, "iptables-wrapper: found: ") {
			t.Errorf("%v: got %q, %q", err, answer, told)
		}
	}
	t.Run("select", func(t *testing.T) { // before any other: names are repointed only in the container's own namespace
		found(t, "legacy", "select", "iptables-legacy -t mangle -N KUBE-KUBELET-CANARY")
		wantNames(t, legacyProgram)
	})
	for evidence, mode := range map[string]string{
		"iptables-nft -t mangle -N KUBE-IPTABLES-HINT": "nft", "ip6tables-nft -t mangle -N KUBE-KUBELET-CANARY": "nft",
		"ip6tables-nft -A INPUT -j ACCEPT": "nft", "ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT": "legacy", "iptables-legacy -A INPUT -j ACCEPT": "legacy",
	} {
		t.Run(evidence, func(t *testing.T) {
			host.Netns(t)
			found(t, mode, "detect", evidence)
		})
	}
	t.Run("found already", func(t *testing.T) { // nothing to wait for
		host.Netns(t)
		host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
		if got := host.Run(t, "iptables-wrapper", "detect", "--wait", "10m"); got != "nft\n" {
			t.Errorf("got %q", got)
		}
	})
}

// A signal ends the wait at once, by the status that a shell gives it, also as the first process of a container: the
// kernel keeps signals from that which it does not ask for. What the caller has it ignore does not end it.
func TestWaitEndsBySignal(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	end := func(w waiting, pid int, signal unix.Signal, how string) {
		t.Helper()
		host.Check(t, unix.Kill(pid, signal))
		_ = w.Wait()
		if got := w.ProcessState.ExitCode(); got != 128+int(signal) {
			t.Errorf("%v, %s: status %d", signal, how, got)
		}
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT} {
		w := startWaiting(t, "iptables-wrapper", "detect", "--wait", "10m")
		end(w, w.Process.Pid, signal, "plainly")
		w = startWaiting(t, "unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "iptables-wrapper", "detect", "--wait", "10m")
		end(w, children(t, w.Process.Pid)[0], signal, "as a first process")

		other, name := unix.SIGINT, "TERM"
		if signal == unix.SIGINT {
			other, name = unix.SIGTERM, "INT"
		}
		w = startWaiting(t, "sh", "-c", "trap '' "+name+"; exec iptables-wrapper detect --wait 10m")
		host.Check(t, unix.Kill(w.Process.Pid, signal))
		// Both at once would be delivered in the order of their numbers. The first has done what it does when there is none left.
		for pending := regexp.MustCompile(`ShdPnd:\s*0*[1-9a-f]`); pending.MatchString(read(t, proc(w.Process.Pid, "status"))); {
			runtime.Gosched()
		}
		end(w, w.Process.Pid, other, "where SIG"+name+" is ignored")
	}
}

// After the wait a signal ends the process by itself, here while it waits for the lock of the links.
func TestSignalAfterWait(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	dir, err := os.Open("/usr/sbin")
	host.Check(t, err)
	defer dir.Close()
	host.Check(t, unix.Flock(int(dir.Fd()), unix.LOCK_EX))
	w := startWaiting(t, "iptables-wrapper", "select", "--wait", "10m")
	host.Run(t, "iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	if line, _ := w.stderr.ReadString('\n'); !strings.HasPrefix(line, "iptables-wrapper: found: legacy") {
		t.Errorf("got %q", line)
	}
	host.Check(t, unix.Kill(w.Process.Pid, unix.SIGTERM))
	_ = w.Wait()
	if got := w.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != unix.SIGTERM {
		t.Errorf("it ended with status %d, and by no signal", got.ExitStatus())
	}
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	lists, _ := filepath.Glob(proc(pid, "task/*/children"))
	for _, list := range lists {
		content, _ := os.ReadFile(list) // the thread may have ended
		for child := range strings.FieldsSeq(string(content)) {
			all = append(all, number(t, child))
		}
	}
	return all
}
