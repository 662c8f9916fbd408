// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

var mayOpen = regexp.MustCompile(`"(/proc|/sys|/usr/sbin|/etc/alternatives|/dev)\b|^\d+, "\."`)

// On its way to the program, the wrapper starts no process and reads no file but those it needs. Two execves: its own
// start, and the program.
func TestWrapperPath(t *testing.T) {
	for _, evidence := range []struct {
		backend, make string
		most          int // questions: two to nft, two for each family of legacy
	}{
		{backend: "nft", make: "iptables-nft -t mangle -N KUBE-IPTABLES-HINT", most: 6},
		{backend: "legacy", make: "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", most: 6},
		{backend: "nft", make: "iptables-nft -A INPUT -j ACCEPT", most: 100},
		{backend: "legacy", make: "iptables-legacy -A INPUT -j ACCEPT", most: 100},
	} {
		t.Run(evidence.make, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			host.Check(t, host.LayOut(os.Getenv(host.WrapperVariable)))
			host.Run(t, "sh", "-c", evidence.make)
			file := filepath.Join(t.TempDir(), "trace")
			host.Run(t, "strace", "-f", "-s", "200", "-o", file, "iptables", "--version")
			calls, _, becomes := strings.Cut(read(t, file),
				` execve("/usr/sbin/iptables-`+evidence.backend+`", ["iptables", "--version"]`)
			if !becomes || strings.Count(calls, " execve(") != 1 {
				t.Errorf("it does not become the program: %s", calls)
			}
			asked := 0
			for line := range strings.Lines(calls) {
				_, call, _ := strings.Cut(line, " ")
				name, args, _ := strings.Cut(strings.TrimSpace(call), "(")
				switch name {
				case "fork", "vfork", "clone", "clone3":
					if !strings.Contains(args, "CLONE_THREAD") {
						t.Errorf("it starts a process: %s", call)
					}
				case "open", "openat", "openat2":
					// By a path, or by a descriptor of the directory of the commands.
					if !mayOpen.MatchString(args) {
						t.Errorf("it reads %s", call)
					}
				case "write":
					t.Errorf("it writes: %s", call)
				case "sendto", "getsockopt":
					asked++
				}
			}
			if asked == 0 || asked > evidence.most {
				t.Errorf("%d questions: %s", asked, calls)
			}
		})
	}
}

// What packages do before a wrapped call costs every call. The init function of internal/call runs it before the
// packages of the command line are initialized, and until then the packages of this module allocate nothing: one error
// that fmt.Errorf made as the value of a variable cost 13 page faults. What is left is in docs/evidence/benchmarks.md.
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
			if command == "iptables" && strings.Contains(name, "/iptables-wrappers/") &&
				!strings.HasSuffix(line, " 0 allocs\n") {
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
