// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// startWaiting starts a command that waits, and returns when it does.
func startWaiting(t *testing.T, name string, args ...string) (cmd *exec.Cmd, stdout, stderr *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr = bufio.NewReader(errs)
	if line, _ := stderr.ReadString('\n'); !strings.HasPrefix(line, "iptables-wrapper: waiting up to ") {
		t.Errorf("it does not say what it waits for: %q", line)
	}
	return cmd, bufio.NewReader(out), stderr
}

// Evidence that comes during the wait ends it.
func TestWait(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	t.Run("select", func(t *testing.T) { // before any other: names are repointed only in the container's own namespace
		found(t, "legacy", "select", "iptables-legacy", "-t", "mangle", "-N", "KUBE-KUBELET-CANARY")
		wantNames(t, legacyProgram)
	})
	for _, test := range []struct {
		mode    string
		command []string
	}{
		{"nft", []string{"iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"}},
		{"nft", []string{"ip6tables-nft", "-t", "mangle", "-N", "KUBE-KUBELET-CANARY"}},
		{"nft", []string{"ip6tables-nft", "-A", "INPUT", "-j", "ACCEPT"}},
		{"legacy", []string{"ip6tables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"}},
		{"legacy", []string{"iptables-legacy", "-A", "INPUT", "-j", "ACCEPT"}},
	} {
		t.Run(strings.Join(test.command, " "), func(t *testing.T) {
			host.Netns(t)
			found(t, test.mode, "detect", test.command...)
		})
	}
	// Nothing to wait for.
	t.Run("found already", func(t *testing.T) {
		host.Netns(t)
		host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
		if output, err := exec.Command("iptables-wrapper", "detect", "--wait", "10m").Output(); err != nil || string(output) != "nft\n" {
			t.Errorf("%v: got %q", err, output)
		}
	})
}

// found checks that a command that waits ends with the mode as soon as another one has made evidence.
func found(t *testing.T, mode, command string, evidence ...string) {
	t.Helper()
	cmd, stdout, stderr := startWaiting(t, "iptables-wrapper", command, "--wait", "10m")
	host.Run(t, evidence[0], evidence[1:]...)
	told, _ := io.ReadAll(stderr)
	answer, _ := io.ReadAll(stdout)
	if err := cmd.Wait(); err != nil || string(answer) != mode+"\n" || !strings.HasPrefix(string(told), "iptables-wrapper: found: ") {
		t.Errorf("%v: got %q, %q", err, answer, told)
	}
}

// Idle waiting asks five times a second, not more.
func TestWaitIsIdle(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	trace := t.TempDir() + "/trace"
	output, _ := exec.Command("strace", "-f", "-o", trace, "-e", "trace=openat", "iptables-wrapper", "detect", "--wait", "1s").CombinedOutput()
	if !strings.Contains(string(output), "iptables-wrapper: timed out\n") {
		t.Errorf("got %q", output)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	// Before, in, and after the wait; fewer times where the machine is busy.
	if looks := strings.Count(string(text), "/net/ip_tables_names"); looks < 2 || looks > 5+4 {
		t.Errorf("%d looks in 1 s:\n%s", looks, text)
	}
}
