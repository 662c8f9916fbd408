// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

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

// The suite starts its own program in each container, which is the test's here.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	os.Exit(m.Run())
}

func examined(t *testing.T, w wrapper, pattern string) []result {
	t.Helper()
	if os.Getuid() != 0 {
		host.Cannot(t, "make a container: run it as root")
	}
	results, err := w.examine(regexp.MustCompile(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// This project's wrapper passes, as install makes the names point to it, and as a copy over a name. Where the names are
// links straight to it, it keeps nothing, and answers all the same. "make test" plays what no script has, and
// "make test-all" all situations.
func TestOurs(t *testing.T) {
	file, err := host.Wrapper()
	host.Check(t, err)
	// What scripts, histories, interleavings, FuzzCall and exec.TestBecome have too is not played twice.
	installed := "^(host: hint in legacy$|standard input|transparent: calls|signal: (SIGTERM|its parent)|" +
		"inherited: (plainly|variables|ignored|.*pending)|race: the names|throughout)"
	copied := "^steady: a guess adds a rule, then kubelet.s hint"
	linked := "^host: hint in legacy$"
	if host.All() {
		installed, copied, linked = "", "", "^host"
	}
	for names, pattern := range map[string]string{
		"testdata/install.sh": installed,
		"testdata/copy.sh":    copied,
		"links":               linked,
		"alternatives":        linked,
	} {
		t.Run(names, func(t *testing.T) {
			for _, r := range examined(t, wrapper{file, names}, pattern) {
				if !r.passed() {
					t.Errorf("%s: got %q, want %q", r.ID(), r.got, r.want)
				}
			}
		})
	}
}

// The suite finds the faults of programs that have some: iptables-nft under the six commands, and as a child.
func TestFaultsAreFound(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "parent")
	host.Check(t, os.WriteFile(parent, []byte("#!/bin/sh\nxtables-nft-multi \"${0##*/}\" \"$@\"\n"), 0o755))
	for program, faults := range map[string][]string{
		"/usr/sbin/xtables-nft-multi": {"host: hint in legacy"},
		parent:                        {"host: hint in legacy", "signal: the process that was called is the program"},
	} {
		for _, r := range examined(t, wrapper{program, "links"}, "^(host: hint in (nft|legacy)$|signal: the process)") {
			if r.passed() == slices.Contains(faults, r.ID()) {
				t.Errorf("%s: %s: got %q, want %q", program, r.ID(), r.got, r.want)
			}
		}
	}
}

// Somebody else runs the suite as a program: it prints a table, and its status says whether all is well.
func TestProgram(t *testing.T) {
	if os.Getuid() != 0 {
		host.Cannot(t, "make a container: run it as root")
	}
	suite, err := os.Executable() // which TestMain makes the suite if it has arguments of the suite
	host.Check(t, err)
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-wrapper", "/usr/sbin/xtables-nft-multi", "-run", "^host: hint in nft$"}, 0,
			"1 of 1 situations as expected\n"},
		{[]string{"-wrapper", "/usr/sbin/xtables-nft-multi", "-run", "^host: hint in (nft|legacy)$"}, 1,
			"| host: hint in legacy | the host's backend | nft, and the host's is legacy |\n\n" +
				"| group | as expected |\n| --- | --- |\n" + "| host | 1 of 2 |\n\n1 of 2 situations as expected\n"},
		{[]string{"-wrapper", "/usr/sbin/xtables-nft-multi", "-run", "no such thing"}, 2, "no situation matches"},
		{[]string{"-wrapper", "/no/such/file"}, 2, "no such file"},
		{[]string{"-wrapper", "/usr/sbin/xtables-nft-multi", "-names", "/no/such/script"}, 2, "no such file"},
		{[]string{"-all"}, 2, "-wrapper program"},
	} {
		cmd := exec.Command(suite, test.args...)
		output, _ := cmd.CombinedOutput()
		status := cmd.ProcessState.ExitCode()
		if status != test.status || !strings.Contains(string(output), test.want) {
			t.Errorf("%q: status %d, want %d; got %s", test.args, status, test.status, output)
		}
	}
}
