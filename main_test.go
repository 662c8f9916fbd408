// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/iptables-wrappers/iptables-wrappers"

// What each package may import of ours. What is not listed imports nothing of ours.
var mayImport = map[string][]string{
	"": {"internal/call", "internal/command", "internal/process"},
	"internal/call": {"detect", "exec", "internal/layout", "internal/memory", "internal/process",
		"internal/programs", "internal/self", "internal/tree"},
	"detect":            {"internal/netlink"},
	"exec":              {"detect", "internal/process", "internal/programs", "internal/tree"},
	"internal/programs": {"detect"},
	"internal/tree":     {"detect", "internal/programs"},
	"internal/self":     {"detect", "internal/process", "internal/programs", "internal/tree"},
	"internal/memory":   {"detect", "internal/programs", "internal/self", "internal/tree"},
	"internal/layout":   {"detect", "internal/memory", "internal/programs", "internal/self", "internal/tree"},
	"internal/here":     {"detect", "internal/layout", "internal/memory", "internal/programs", "internal/tree"},
	"internal/install":  {"detect", "internal/layout", "internal/programs", "internal/self", "internal/tree"},

	"internal/extensions": {"detect", "internal/netlink", "internal/tree"},
	"internal/doctor": {"detect", "internal/extensions", "internal/here", "internal/install",
		"internal/layout", "internal/memory", "internal/netlink", "internal/programs", "internal/self",
		"internal/tree"},
	"internal/command": {"detect", "internal/doctor", "internal/extensions", "internal/here",
		"internal/install", "internal/layout", "internal/memory", "internal/process",
		"internal/programs", "internal/self", "internal/tree"},
}

// imports returns the direct imports of each of our packages, or all of them.
func imports(t *testing.T, template string) map[string][]string {
	t.Helper()
	output, err := exec.Command("go", "list", "-f", "{{.ImportPath}} "+template, ".", "./detect", "./exec",
		"./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		all[strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")] = fields[1:]
	}
	return all
}

// One way through: main, detect, exec. Only the command line knows its library, and nothing on a wrapped call's way
// brings in what a wrapped call does not need.
func TestImports(t *testing.T) {
	for from, direct := range imports(t, `{{join .Imports " "}}`) {
		for _, to := range direct {
			ours, isOurs := strings.CutPrefix(to, module+"/")
			if isOurs && !slices.Contains(mayImport[from], ours) {
				t.Errorf("%q imports %q", from, ours)
			}
			if strings.HasPrefix(to, "github.com/urfave/") && from != "internal/command" {
				t.Errorf("%q imports %q", from, to)
			}
		}
	}
	all := imports(t, `{{join .Deps " "}}`)
	for _, from := range []string{"detect", "exec", "internal/call", "internal/layout"} {
		for _, unwanted := range []string{"encoding/json", "os/exec", "net", "github.com/urfave/cli/v2"} {
			if slices.Contains(all[from], unwanted) {
				t.Errorf("%q brings in %q", from, unwanted)
			}
		}
	}
	if len(all) < len(mayImport) {
		t.Errorf("only %d packages", len(all))
	}
}
