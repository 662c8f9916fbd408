// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// trace runs a command under strace and returns the calls up to the second execve, where the wrapper ends.
func trace(t *testing.T, args ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	host.Run(t, "strace", append([]string{"-f", "-s", "200", "-o", file}, args...)...)
	content := host.Read(t, file)
	var calls []string
	execs := 0
	for line := range strings.Lines(string(content)) {
		_, call, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		calls = append(calls, strings.TrimSpace(call))
		if strings.HasPrefix(calls[len(calls)-1], "execve(") {
			if execs++; execs == 2 {
				break
			}
		}
	}
	if execs == 0 {
		t.Fatalf("strace saw nothing: %s", content)
	}
	return calls
}

func matching(calls []string, pattern string) []string {
	re := regexp.MustCompile(pattern)
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !re.MatchString(call) })
}

// On its way to the program, the wrapper starts no process and reads no file but those it needs. Two execves: its own
// start, and the program.
func TestWrapperPath(t *testing.T) {
	for _, sign := range []string{"hint", "rule"} {
		inBothModes(t, func(t *testing.T, mode string) {
			if sign == "rule" {
				host.Run(t, "iptables-"+mode, "-t", "mangle", "-X")
				host.Run(t, "iptables-"+mode, "-A", "INPUT", "-j", "ACCEPT")
			}
			calls := trace(t, "iptables", "--version")
			if got := matching(calls, `^execve\(`); len(got) != 2 ||
				!strings.Contains(got[1], `execve("/usr/sbin/xtables-`+mode+`-multi", ["iptables", "--version"]`) {
				t.Errorf("got %q", got)
			}
			for _, start := range matching(calls, `^(fork|vfork|clone|clone3)\(`) {
				if !strings.Contains(start, "CLONE_THREAD") {
					t.Errorf("it starts a process: %s", start)
				}
			}
			for _, open := range matching(calls, `^open(at|at2)?\(`) {
				if !regexp.MustCompile(`"(/proc|/sys|/usr/sbin|/dev|/run)\b`).MatchString(open) {
					t.Errorf("it reads %s", open)
				}
			}
			if got := matching(calls, `^write\(`); len(got) > 0 {
				t.Errorf("it writes %q", got)
			}
			// With a hint, at most: two questions to nft, two for each family of legacy.
			if asked := matching(calls, `^(sendto|getsockopt)\(`); len(asked) == 0 || sign == "hint" && len(asked) > 6 {
				t.Errorf("%d questions: %q", len(asked), asked)
			}
		})
	}
}

// What packages do before a wrapped call costs every call. The init function of internal/call runs it before the packages of
// the command line are initialized, and until then the packages of this module allocate nothing: one error that fmt.Errorf
// made as the value of a variable cost 13 page faults. What is left is in docs/evidence/benchmarks.md.
func TestEarly(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	initialized := func(command string) (packages []string) {
		trace, err := exec.Command("sh", "-c", "GODEBUG=inittrace=1 "+command+" --version 2>&1 >/dev/null").Output()
		host.Check(t, err)
		for line := range strings.Lines(string(trace)) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "init "), " ")
			packages = append(packages, name)
			if command == "iptables" && strings.Contains(name, "/iptables-wrappers/") && !strings.HasSuffix(line, " 0 allocs\n") {
				t.Errorf("before a wrapped call: %s", line)
			}
		}
		return packages
	}
	const late = "github.com/urfave/cli/v2"
	wrapped, command := initialized("iptables"), initialized("iptables-wrapper")
	if slices.Contains(wrapped, late) || !slices.Contains(command, late) {
		t.Errorf("a wrapped call initializes %q, the command line %q", wrapped, command)
	}
}
