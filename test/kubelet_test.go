// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A chain of kubelet's that is evidence is said to be so wherever the others are: on the pages, in the random rule sets
// of package detect, by detect, which names the chain that it has found, and by doctor, which removes it.
func TestKubeletChains(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	contains := func(text, name string) bool {
		return regexp.MustCompile(`\b` + name + `($|[^\w-])`).MatchString(text)
	}
	for constant, chain := range constants(t, "../detect", "HintChain") {
		for _, file := range []string{"README.md", "docs/how-it-works.md", "docs/detect.v3.schema.json"} {
			if !contains(read(t, "../"+file), chain) {
				t.Errorf("%s does not name %s", file, chain)
			}
		}
		if !contains(read(t, "../detect/save_test.go"), constant) {
			t.Errorf("chainNames and backend in detect/save_test.go do not have %s", constant)
		}
		for _, backend := range []string{"nft", "legacy"} {
			host.Run(t, "iptables-"+backend, "-t", "mangle", "-N", chain)
			table := host.Run(t, "iptables-wrapper", "detect", "-o", "table")
			found := "(certain: chain " + chain + " is in " + backend + "'s mangle table"
			if !regexp.MustCompile(`(?m)^host: .*` + regexp.QuoteMeta(found)).MatchString(table) {
				t.Errorf("detect does not say %q; see Because in detect/words.go:\n%s", found, table)
			}
			explained := regexp.MustCompile(`(?m)^HINT,.*: .*`).FindString(table)
			if !contains(explained, chain) {
				t.Errorf("detect -o table does not explain %s; see tables in internal/command/doctor.go", chain)
			}
			host.Run(t, "iptables-"+backend, "-t", "mangle", "-X", chain)
		}
		host.Run(t, "iptables-legacy", "-t", "mangle", "-N", chain)
		host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
		said, _ := exec.Command("iptables-wrapper", "doctor").Output() // its status is 1: nothing is installed
		if !regexp.MustCompile(`chains-in-both: .* left over: ` + chain + ` \(ipv4 mangle\)`).Match(said) {
			t.Errorf("doctor does not say that %s is left over; see leftover in internal/doctor/leftovers.go:\n%s",
				chain, said)
		}
		host.Run(t, "iptables-legacy", "-t", "mangle", "-X", chain)
		host.Run(t, "iptables-nft", "-t", "mangle", "-X", "KUBE-IPTABLES-HINT")
	}
}

// What is found of HintChain is in Evidence.Hint, and so on. A file that reads more than one of these reads all.
func TestFieldsOfKubeletChains(t *testing.T) {
	var fields []string
	for constant := range constants(t, "../detect", "HintChain") {
		fields = append(fields, strings.TrimSuffix(constant, "Chain"))
	}
	found := 0
	for _, pattern := range []string{"../detect/*.go", "../internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		host.Check(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text := read(t, file)
			var missing []string
			for _, field := range fields {
				if !regexp.MustCompile(`\.` + field + `\b`).MatchString(text) {
					missing = append(missing, field)
				}
			}
			if len(fields)-len(missing) < 2 {
				continue
			}
			found++
			if len(missing) > 0 {
				name := strings.TrimPrefix(file, "../")
				t.Errorf("%s reads what Evidence has of kubelet's chains, but not %q", name, missing)
			}
		}
	}
	if found == 0 {
		t.Error("no file reads two of them: they are called in another way than this test looks for")
	}
}
