// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The commits that docs/releasing.md says to make name the right version, and no page says what is no longer true: a
// candidate of the first release, the release, the next patch, and a candidate of the next minor version. "make test"
// makes the first two.
func TestReleaseCommits(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	steps := commandsOf(t, "Before the tag")
	before := namedByPages(t, dir)
	release := nextRelease(before)
	versions := []struct{ version, onPages string }{
		{release + "-rc.1", ""},
		{release, release},
		{nextPatch(release), nextPatch(release)},
		{nextCandidate(release), nextPatch(release)},
	}
	for _, c := range versions[:host.Number(2, len(versions))] {
		cmd := exec.Command("sh", "-euc", aFix+strings.ReplaceAll(steps, "VERSION", c.version))
		cmd.Dir = dir
		cmd.Env = append(append(os.Environ(), committer...), "PLATFORMS=linux/amd64 linux/arm64")
		output(t, cmd)
		if !strings.Contains(string(host.Read(t, filepath.Join(dir, "CHANGELOG.md"))), "\n## ["+c.version+"] - 20") {
			t.Errorf("%s: the changelog has no section", c.version)
		}
		if c.onPages == "" { // it may be on the pages, or not
			continue
		}
		for _, problem := range untrue(t, dir, before, c.onPages) {
			t.Errorf("%s: %s", c.version, problem)
		}
		before = c.onPages
	}
}

// aFix is a commit with something to release, which is more than fits into a pipe.
const aFix = `
{ printf '\n### Fixed\n\n' && seq --format '- Fix %.0f.' 20000; } |
	sed -i '/^## \[Unreleased\]/r /dev/stdin' CHANGELOG.md
git commit --quiet --all --message fix
`

// committer is the environment of whoever commits.
var committer = []string{
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_AUTHOR_NAME=test",
	"GIT_AUTHOR_EMAIL=test@example.com",
	"GIT_COMMITTER_NAME=test",
	"GIT_COMMITTER_EMAIL=test@example.com",
}

// nextRelease is what the pages name before it, or what their candidate is a candidate for.
func nextRelease(version string) string {
	version, _, _ = strings.Cut(version, "-")
	return version
}

func nextPatch(version string) string {
	major, minor, patch := numbers(version)
	return fmt.Sprintf("v%d.%d.%d", major, minor, patch+1)
}

// nextCandidate is the first candidate of the next minor version.
func nextCandidate(version string) string {
	major, minor, _ := numbers(version)
	return fmt.Sprintf("v%d.%d.0-rc.1", major, minor+1)
}

func numbers(version string) (major, minor, patch int) {
	_, _ = fmt.Sscanf(version, "v%d.%d.%d", &major, &minor, &patch) // namedByPages has seen that it has the three
	return major, minor, patch
}

// namedByPages is the version that the pages tell users to take.
func namedByPages(t *testing.T, dir string) string {
	t.Helper()
	page := host.Read(t, filepath.Join(dir, "docs/install.md"))
	match := regexp.MustCompile(`(?m)^ADD .*/releases/download/(v[0-9]+\.[0-9]+\.[0-9]+[^/]*)/`).FindSubmatch(page)
	if match == nil {
		t.Fatal("docs/install.md names no version")
	}
	return string(match[1])
}

// commandsOf returns the commands that a section of docs/releasing.md shows.
func commandsOf(t *testing.T, heading string) (commands string) {
	t.Helper()
	_, section, found := strings.Cut(string(host.Read(t, "../../docs/releasing.md")), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, match := range regexp.MustCompile(`(?m)^ {4}(?: {3})?(\S.*\n)`).FindAllStringSubmatch(section, -1) {
		commands += match[1]
	}
	if !found || commands == "" {
		t.Fatalf("docs/releasing.md shows no commands in %q", heading)
	}
	return commands
}

// untrue returns what the pages say that holds only before a release, and where they name another version than they
// should.
func untrue(t *testing.T, dir, old, version string) (problems []string) {
	t.Helper()
	early := regexp.MustCompile(`(?i)not (been )?(yet )?(published|released)|(published|released) yet` +
		`|(until|before) (the|its) first release|sha256:\.\.\.|echo '\.\.\.`)
	const number = `(v[0-9][-.0-9A-Za-z]*[0-9A-Za-z])`
	named := regexp.MustCompile(`iptables-wrappers?[:@]` + number +
		`|(?:refs/tags/|releases/download/)` + number)
	names := 0
	readme := string(host.Read(t, filepath.Join(dir, "README.md")))
	if !strings.Contains(readme, "\nCOPY --from=ghcr.io/iptables-wrappers/iptables-wrapper:"+version+" ") ||
		strings.Contains(readme, "docker build --tag iptables-wrapper ") {
		problems = append(problems, "README.md does not begin with the release's image")
	}
	for _, recipe := range []struct{ file, line string }{
		{"APKBUILD", "\npkgver=" + version[1:] + "\n"},
		{"melange.yaml", "\n  version: \"" + version[1:] + "\"\n"},
	} {
		if !strings.Contains(string(host.Read(t, filepath.Join(dir, "examples/packages", recipe.file))), recipe.line) {
			problems = append(problems, recipe.file+" has another version")
		}
	}
	files := strings.Fields(host.Run(t, "git", "-C", dir, "ls-files", "--",
		"*.md", "examples", ":!docs/evidence", ":!docs/releasing.md"))
	for _, file := range files {
		text := string(host.Read(t, filepath.Join(dir, file)))
		if file == "CHANGELOG.md" { // whose sections stay as they are
			text, _, _ = strings.Cut(text, "\n## [")
		}
		for _, word := range early.FindAllString(strings.ReplaceAll(text, "\n", " "), -1) {
			problems = append(problems, file+" says "+word)
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			names++
			if match[1]+match[2] != version {
				problems = append(problems, file+" names "+match[1]+match[2])
			}
		}
		if old != version && regexp.MustCompile(regexp.QuoteMeta(old)+`($|[^-.0-9A-Za-z])`).MatchString(text) {
			problems = append(problems, file+" names "+old)
		}
	}
	if names < 5 {
		t.Errorf("the pages name the version %d times", names)
	}
	return problems
}
