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
	for _, mode := range []string{"nft", "legacy"} {
		for _, sign := range []string{"hint", "rule"} {
			t.Run(mode+" "+sign, func(t *testing.T) {
				if !host.Contain(t) {
					return
				}
				installed(t)
				if sign == "hint" {
					host.Run(t, "iptables-"+mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
				} else {
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
				asked := matching(calls, `^(sendto|getsockopt)\(`)
				if sign == "hint" && len(asked) > 6 {
					t.Errorf("%d questions: %q", len(asked), asked)
				}
				if len(asked) == 0 {
					t.Error("it asks nothing")
				}
			})
		}
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

// Looking leaves no trace: no table is registered, in a namespace where each of them is or is not there.
func TestNoTrace(t *testing.T) {
	for _, state := range []struct{ doc, commands string }{
		{"nothing", ""},
		{"a legacy table", "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT"},
		{"rules in legacy", "ip6tables-legacy -A INPUT -j ACCEPT"},
		{"an nft table", "iptables-nft -t mangle -N KUBE-KUBELET-CANARY"},
		{"both", "iptables-nft -A INPUT -j ACCEPT; iptables-legacy -t nat -N X"},
	} {
		t.Run(state.doc, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			putWrapper(t, wrapperFile)
			host.Run(t, "sh", "-ec", state.commands)
			before := snapshot(t)
			for _, format := range []string{"text", "json", "table"} {
				host.Run(t, "iptables-wrapper", "detect", "-o", format)
				if after := snapshot(t); after != before {
					t.Errorf("-o %s: before:\n%s\nafter:\n%s", format, before, after)
				}
			}
			calls := trace(t, "iptables-wrapper", "detect", "-o", "json")
			for _, start := range matching(calls, `^(fork|vfork|clone|clone3)\(`) {
				if !strings.Contains(start, "CLONE_THREAD") {
					t.Errorf("it starts a process: %s", start)
				}
			}
			if got := matching(calls, `^(setsockopt\(.*SOL_IP|execve|init_module|finit_module|unlink|rename|symlink|open.*(O_WRONLY|O_RDWR|O_CREAT))`); len(got) != 1 {
				t.Errorf("it does more than look: %q", got)
			}
		})
	}
}

// snapshot is all that a detector could change: tables, modules, processes, files. There is no /proc/modules where the
// kernel can load none; then there is none to be loaded.
func snapshot(t *testing.T) string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	host.Check(t, err)
	return strings.Join(processes, "\n") + "\n" + host.Run(t, "sh", "-c", `
		for f in /proc/net/ip_tables_names /proc/net/ip6_tables_names /proc/modules; do echo "$f:"; cat $f 2>&1; done
		nft list ruleset
		ls -lA --time-style=full-iso /usr/sbin /etc/alternatives /dev/shm | cksum`)
}
