// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/page"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// pages returns the text of every page, by its path from the top.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/evidence/*.md", "images/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			found[strings.TrimPrefix(file, "../")] = read(t, file)
		}
	}
	return found
}

// Every link within the repository points to a file that exists, and to a heading of it.
func TestLinksOfPages(t *testing.T) {
	all := pages(t)
	checked := 0
	for name, text := range all {
		for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if other, isPage := all[target]; anchor != "" &&
				(!isPage || !slices.Contains(anchors(other), anchor)) {
				t.Errorf("%s: %s has no heading %q", name, target, anchor)
			}
			checked++
		}
	}
	if checked < 30 {
		t.Errorf("only %d links were checked", checked)
	}
}

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(text string) (all []string) {
	for _, match := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}

// The decision table of docs/how-it-works.md has the rows of detect's table, in its order.
func TestDecisionTable(t *testing.T) {
	_, table, _ := strings.Cut(pages(t)["docs/how-it-works.md"], "\n## Decision\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var got []detect.Reason
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, detect.Reason(row[1]))
	}
	want := detect.Reasons()
	for _, reason := range want {
		if !slices.Contains(got, reason) {
			t.Errorf("docs/how-it-works.md: the table below \"Decision\" has no row for `%s`", reason)
		}
	}
	for _, reason := range got {
		if !slices.Contains(want, reason) {
			t.Errorf("docs/how-it-works.md: detect.Reasons does not have the row `%s` of the table below \"Decision\"",
				reason)
		}
	}
	if !t.Failed() && !slices.Equal(got, want) {
		t.Errorf("docs/how-it-works.md: the rows below \"Decision\" are %q, and detect.Reasons %q", got, want)
	}
}

// Every option that a page gives to a command is in the command's help.
func TestOptionsOnPages(t *testing.T) {
	commands := regexp.MustCompile("iptables-wrapper (detect|doctor|install|select|reset)" +
		"((?: --?[a-z-]+(?:[ =][^\\s`|;-][^\\s`|;]*)?)+)")
	checked := 0
	for name, text := range pages(t) {
		for _, match := range commands.FindAllStringSubmatch(text, -1) {
			help, err := exec.Command(os.Getenv(host.WrapperVariable), match[1], "--help").Output()
			host.Check(t, err)
			for _, option := range regexp.MustCompile(` (--?[a-z-]+)`).FindAllStringSubmatch(match[2], -1) {
				if !regexp.MustCompile(`(^|[ ,])` + option[1] + `\b`).Match(help) {
					t.Errorf("%s: %q: %s has no option %s", name, match[0], match[1], option[1])
				}
				checked++
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d options were checked", checked)
	}
}

// Every test and script that docs/security.md and docs/evidence/comparison.md give as proof exists, and the README has
// the conformance suite's numbers.
func TestProofs(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "../*/*_test.go", "../internal/*/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			tests.WriteString(read(t, file))
		}
	}
	const commands = " detect doctor install select reset xtables-nft-multi update-alternatives "
	for _, page := range []string{"docs/security.md", "docs/evidence/comparison.md"} {
		// A script is what stands alone between backquotes, or behind TestScript/, and is no option, path or command.
		namedIn := regexp.MustCompile("`(Test[A-Za-z]+)(?:/([a-z-]+))?`|`([a-z][a-z-]+)`")
		named := namedIn.FindAllStringSubmatch(pages(t)[page], -1)
		for _, name := range named {
			name[2] += name[3]
			if name[1] != "" && !strings.Contains(tests.String(), "func "+name[1]+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s", page, name[1])
			}
			_, err := os.Stat("script/" + name[2] + ".txtar")
			if name[2] != "" && err != nil && !strings.Contains(commands, " "+name[2]+" ") &&
				!strings.HasPrefix(name[2], "iptables-") {
				t.Errorf("%s: there is no script %s", page, name[2])
			}
		}
		if len(named) < 8 {
			t.Errorf("%s names %d tests", page, len(named))
		}
	}
	numbers := regexp.MustCompile("Of ([0-9]+) situations, iptables-nft fails ([0-9]+) and `counts.sh` [0-9]+")
	suite := numbers.FindStringSubmatch(pages(t)["docs/evidence/conformance.md"])
	if suite == nil {
		t.Fatal("docs/evidence/conformance.md has no numbers")
	}
	if !strings.Contains(pages(t)["README.md"], "| 0 of "+suite[1]+" | ") {
		t.Errorf("the README does not say 0 of %s", suite[1])
	}
}

// A page that links to a file of another project says in a comment that the file was read, at the commit of the link.
func TestSources(t *testing.T) {
	link := regexp.MustCompile(`\]\(https://github\.com/([\w-]+/[\w.-]+)/blob/([0-9a-f]{40})/([^)#]+)`)
	comment := regexp.MustCompile(`(?s)<!--.*?-->`)
	checked := 0
	for name, text := range pages(t) {
		read := strings.Join(comment.FindAllString(text, -1), "\n")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			for _, part := range match[1:] {
				if !strings.Contains(read, part) {
					t.Errorf("%s: no comment says that %s was read: %q is missing", name, match[0], part)
				}
			}
			checked++
		}
	}
	if checked < 15 {
		t.Errorf("only %d links were checked", checked)
	}
}

// The README can be read in four minutes.
func TestReadmeIsShort(t *testing.T) {
	if words := len(strings.Fields(read(t, "../README.md"))); words > 800 {
		t.Errorf("it has %d words", words)
	}
}

// The code on docs/library.md is that of the examples, which tests run.
func TestLibraryPage(t *testing.T) {
	const name = "../docs/library.md"
	text := read(t, name)
	want := text
	for _, file := range []string{"exec/example_test.go", "detect/example_test.go"} {
		example := read(t, filepath.Join("..", file))
		var functions []string
		bodies := regexp.MustCompile(`(?ms)^func Example\w*\(\) \{\n(.*?)^\}$`)
		for _, function := range bodies.FindAllStringSubmatch(example, -1) {
			functions = append(functions, regexp.MustCompile(`(?m)^\t`).ReplaceAllString(function[1], ""))
		}
		want = page.Replace(t, want, file, "```go\n"+strings.Join(functions, "```\n\n```go\n")+"```\n")
	}
	const projects = "exec/projects_test.go"
	code := read(t, filepath.Join("..", projects))
	for _, mark := range regexp.MustCompile("<!-- ("+projects+": (\\w+)) -->").FindAllStringSubmatch(text, -1) {
		function := regexp.MustCompile(`(?ms)^// ` + mark[2] + ` .*?^}\n`).FindString(code)
		if function == "" {
			t.Errorf("%s has no function %s", projects, mark[2])
		}
		want = page.Replace(t, want, mark[1], "```go\n"+function+"```\n")
	}
	if *update {
		host.Check(t, os.WriteFile(name, []byte(want), 0o644))
	} else if want != text {
		t.Errorf("%s differs from the examples: go test ./test -run TestLibraryPage -update", name)
	}
}
