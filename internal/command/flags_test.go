// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each flag of a command is in a script that runs the command.
func TestFlags(t *testing.T) {
	scripts := readAll(t, "../../test/script/*.txtar")
	flag := regexp.MustCompile(`(?m)^   (--[a-z-]+)(?: [A-Z]+, (-o))?`)
	for _, command := range []string{"detect", "doctor", "install", "select", "reset"} {
		_, help, _ := run(program, command, "--help")
		for _, names := range flag.FindAllStringSubmatch(help, -1) {
			either := strings.TrimSuffix(names[1]+"|"+names[2], "|")
			used := regexp.MustCompile(`\b` + command + `( .*)? (` + either + `)\b`)
			if names[1] != "--help" && !used.MatchString(scripts) {
				t.Errorf("no script of test/script/ runs \"iptables-wrapper %s %s\"", command, names[1])
			}
		}
	}
}

// together are the flags of a command of which neither is ignored beside the other: a flag, and those behind it in the
// help. The other pairs are in exclusive.
var together = map[string]map[string]string{
	"detect": {
		"output": "strict netns pid wait for",
		"strict": "netns pid wait for",
		"netns":  "wait for",
		"pid":    "wait for",
		"wait":   "for",
	},
	"doctor": {
		"check": "dir",
		"stale": "dir",
		"all":   "dir",
		"dir":   "output",
	},
	"install": {
		"dir":          "root alternatives force skip-checks",
		"root":         "alternatives force skip-checks",
		"alternatives": "force skip-checks",
		"force":        "skip-checks",
	},
	"select": {
		"dir":   "mode guess wait for",
		"guess": "wait for",
		"wait":  "for",
	},
}

// For any two flags of a command, somebody has decided whether they can be used together.
func TestPairsOfFlags(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^   --([a-z-]+)`)
	for _, command := range []string{"detect", "doctor", "install", "select", "reset"} {
		_, help, _ := run(program, command, "--help")
		var flags []string
		for _, match := range flag.FindAllStringSubmatch(help, -1) {
			if match[1] != "help" {
				flags = append(flags, match[1])
			}
		}
		if len(flags) == 0 {
			t.Errorf("%s --help lists no flag", command)
		}
		for i, a := range flags {
			for _, b := range flags[i+1:] {
				refused := slices.Contains(exclusive[command], [2]string{a, b}) ||
					slices.Contains(exclusive[command], [2]string{b, a})
				allowed := slices.Contains(strings.Fields(together[command][a]), b)
				switch {
				case !refused && !allowed:
					t.Errorf("%s: --%s beside --%s: if one of them would be ignored, add the pair to exclusive in "+
						"usage.go; otherwise to together in flags_test.go", command, a, b)
				case refused && allowed:
					t.Errorf("%s: --%s beside --%s: the pair is in exclusive and in together", command, a, b)
				}
			}
		}
	}
}
