// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Every file says under which licence it is, or REUSE.toml says it.
func TestLicences(t *testing.T) {
	paths := regexp.MustCompile(`"([^" ]+)"`).FindAllStringSubmatch(read(t, "../REUSE.toml"), -1)
	var patterns []string
	for _, path := range paths {
		pattern := regexp.QuoteMeta(path[1])
		pattern = strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`).Replace(pattern)
		patterns = append(patterns, pattern)
	}
	covered := regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")$")
	if len(patterns) < 5 || covered.MatchString("main.go") || !covered.MatchString("README.md") {
		t.Fatalf("REUSE.toml is not understood: %q", patterns)
	}
	files := host.Run(t, "git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	checked := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) || name == "LICENSE" || covered.MatchString(name) {
			continue // the first is removed, and not committed yet
		}
		host.Check(t, err)
		lines := strings.SplitAfterN(string(content), "\n", 11)
		if !strings.Contains(strings.Join(lines[:min(10, len(lines))], ""), "SPDX-License-Identifier: Apache-2.0\n") {
			t.Errorf("%s: no line SPDX-License-Identifier", name)
		}
		checked++
	}
	if checked < 100 {
		t.Errorf("only %d files were checked", checked)
	}
}
