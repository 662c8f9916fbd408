// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// numbers are those on the pages, outside code and what tests write, each with what produces it. The function, if there is one,
// finds the number in the code.
var numbers = []struct {
	pattern, from string
	holds         func(t *testing.T, found string) bool
}{
	{`v1\.0\.0(-rc\.1)?`, "CHANGELOG.md", inFile("CHANGELOG.md", "## [v1.0.0-rc.1]")},
	{`\biptables-wrappers v[123], v2 or v3\b|\bv1 to v3\b|\bv[1236]('s)?\b`, "the names of kubernetes-sigs' releases, and of modules", nil},
	{`2026-\d\d-\d\d`, "the date of a release", nil},
	{`Go 1\.26\b`, "go.mod", inFile("go.mod", "\ngo 1.26.")},
	{`1\.8\.4`, "internal/install/check.go", inFile("internal/install/check.go", "{1, 8, 4}")},
	{`\b(version|iptables) 1\.8\b(\.12)?|UBI 8\b|Kubernetes 1\.24|since 1\.17`, "other projects' releases", nil},
	{`arm64|amd64|arm/v7|ppc64le|s390x|riscv64|\b386\b`, "release/build.sh", func(t *testing.T, found string) bool {
		return inFile("release/build.sh", "linux/"+found)(t, found)
	}},
	{`\b[a-z0-9-]+#\d+\b|\bIPv[46]\b|\bk8s\b|fail2ban|Apache-2\.0`, "names", nil},
	{`(execve|rename|ptrace|kill)\(2\)|process 1\b|group 0\b|argv\[0\]`, "Linux", nil},
	{`status(es)? 0\b|status 127|127 \(program missing\)`, "TestDocs", inFile("docs/how-it-works.md", "    status 127")},
	{`126 \(program cannot be run\)`, "TestScript/program-unusable", inFile("test/script/program-unusable.txtar", "status 126")},
	{`or 2 \(wrong value of`, "TestScript/override", inFile("test/script/override.txtar", "status 2 ")},
	{`\bstatus 3\b`, "TestDocs", inFile("docs/how-it-works.md", "    status 3")},
	{`(with|never) status 1\b`, "TestFaults", nil},
	{`32 to 34`, "the C library and Go's runtime", nil},
	{`1\.6 GB|64 MB`, "TestScript/limits", inFile("test/script/limits.txtar", "ulimit -v 1600000; ulimit -d 65536")},
	{`100,000 rules`, "make bench", inFile("docs/evidence/benchmarks.md", "100,000 rules")},
	{`(?s)A first call costs .*\swith\s100,000\.`, "make bench: TestSentence", nil},
	{`600 first calls, 20 at once|14 fail`, "docs/evidence/comparison.md", inFile("docs/evidence/comparison.md", "600 first calls, 20 at once")},
	{`\d+ (s|min|seconds|minutes)\b`, "printed by each target", inFile("Makefile", "$(TOOK)")},
	{`\d+ [MG]B`, "printed by apt-get", inFile("test/tools.sh", "Need to get|After this operation")},
}

// The parts of a page that other tests run, write or follow.
var elsewhere = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|<!-- (\\S+) -->.*<!-- end of [^>]* -->|<!--.*?-->|`[^`]*`|\\]\\([^)]*\\)|^[0-9]+\\. ")

// No page has a number that nothing produces.
func TestNumbersOnPages(t *testing.T) {
	used := make([]bool, len(numbers))
	for name, text := range pages(t) {
		if dir := filepath.Dir(name); dir != "." && dir != "docs" {
			continue // docs/evidence is written by tests
		}
		text = elsewhere.ReplaceAllStringFunc(text, func(part string) string { return strings.Repeat("\n", strings.Count(part, "\n")) })
		for i, n := range numbers {
			text = regexp.MustCompile(n.pattern).ReplaceAllStringFunc(text, func(found string) string {
				used[i] = true
				if n.holds != nil && !n.holds(t, found) {
					t.Errorf("%s: %q is wrong: see %s", name, found, n.from)
				}
				return ""
			})
		}
		for _, line := range strings.Split(text, "\n") {
			if regexp.MustCompile(`[0-9]`).MatchString(line) {
				t.Errorf("%s: nothing produces the number in %q", name, line)
			}
		}
	}
	for i, n := range numbers {
		if !used[i] {
			t.Errorf("no page has %s", n.pattern)
		}
	}
}

// inFile returns a check that a file has a text.
func inFile(path, text string) func(*testing.T, string) bool {
	return func(t *testing.T, _ string) bool {
		t.Helper()
		content, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(content), text)
	}
}
