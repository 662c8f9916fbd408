// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What the pages of docs/ show is what comes of it: each indented line that begins with "$ " is run, in order, and must
// print the indented lines below it. What a page needs before is in comments that begin with "run:".
func TestDocs(t *testing.T) {
	for _, page := range []string{"decision", "wrong-mode", "requirements", "versions"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			if !host.Contain(t) {
				return
			}
			installed(t)
			text, err := os.ReadFile(filepath.Join("../docs", page+".md"))
			if err != nil {
				t.Fatal(err)
			}
			var command string
			var want []string
			ran := 0
			check := func() {
				if command == "" {
					return
				}
				output, _ := exec.Command("sh", "-c", "exec 2>&1; "+command).Output()
				got := strings.TrimRight(string(output), "\n")
				if want := strings.TrimRight(strings.Join(want, "\n"), "\n"); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", command, got, want)
				}
				command = ""
				ran++
			}
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSuffix(line, "\n")
				shown, indented := strings.CutPrefix(line, "    ")
				setup, isSetup := strings.CutPrefix(line, "<!-- run: ")
				switch {
				case strings.HasPrefix(shown, "$ ") && indented:
					check()
					command, want = shown[2:], nil
				case indented || line == "":
					want = append(want, shown)
				case isSetup:
					check()
					host.Run(t, "sh", "-c", strings.TrimSuffix(setup, " -->"))
				default:
					check()
				}
			}
			check()
			if ran == 0 {
				t.Error("nothing is shown")
			}
		})
	}
}
