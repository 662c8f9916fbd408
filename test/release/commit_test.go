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

// The commits that docs/releasing.md says to make are ones from which a release can be made: what depends on the
// version passes, and no page says what is no longer true. They are made one after the other, as they would be: what
// this checkout is a candidate for, its next patch, a candidate of the next minor version, and that version.
func TestReleaseCommits(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	host.Check(t, err)
	dir := checkout(t, "source")
	steps := commandsOf(t, "Before the tag")
	onPages := namedByPages(t, dir)
	for i, following := range []func(string) string{nextRelease, nextRelease, nextCandidate, nextRelease} {
		version := following(newestIn(t, dir))
		t.Run(version, func(t *testing.T) {
			cmd := exec.Command("sh", "-euc", aFix+strings.ReplaceAll(steps, "VERSION", version))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), committer...)
			output(t, cmd)
			was := onPages
			if !strings.Contains(version, "-") || strings.Contains(was, "-") {
				onPages = version
			}
			for _, problem := range untrue(t, dir, was, onPages) {
				t.Error(problem)
			}
			if i > 0 && !host.All() {
				return // one release, and what this checkout is, are enough here
			}
			// These tests once more, for what is in that commit: only pages and the changelog differ, so they need not
			// be compiled again.
			tests := exec.Command(self, "-test.v", "-test.run=^(TestVersions|TestRefused|TestPublished)$")
			tests.Dir = filepath.Join(dir, "test/release")
			if got := output(t, tests); strings.Count(got, "\n--- PASS: ") != 3 {
				t.Errorf("not all of them ran: %s", got)
			}
		})
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

// nextRelease is what a candidate is a candidate for, or the next patch.
func nextRelease(version string) string {
	major, minor, patch := numbers(version)
	if !strings.Contains(version, "-") {
		patch++
	}
	return fmt.Sprintf("v%d.%d.%d", major, minor, patch)
}

// nextCandidate is the first candidate of the next minor version.
func nextCandidate(version string) string {
	major, minor, _ := numbers(version)
	return fmt.Sprintf("v%d.%d.0-rc.1", major, minor+1)
}

func numbers(version string) (major, minor, patch int) {
	_, _ = fmt.Sscanf(version, "v%d.%d.%d", &major, &minor, &patch) // newestIn has seen that it has the three
	return major, minor, patch
}

// namedByPages is the version that the pages tell users to take.
func namedByPages(t *testing.T, dir string) string {
	t.Helper()
	page := host.Read(t, filepath.Join(dir, "docs/install.md"))
	match := regexp.MustCompile(`(?m)^COPY --from=\S+:(v\S+) `).FindSubmatch(page)
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
		`|will be (the )?(first|published|released)` +
		`|(until|before) (the|its) first release|is a release candidate|before v[0-9]`)
	const number = `(v[0-9][-.0-9A-Za-z]*[0-9A-Za-z])`
	named := regexp.MustCompile(`(?:iptables-wrappers?(?:-distroless)?|\$image)[:@]` + number +
		`|(?:VERSION=|refs/tags/)` + number)
	names := 0
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
