// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The commit that docs/releasing.md says to make is one from which a release can be made: what depends on the version
// passes, and no page says what is no longer true. The three are made one after the other, as they would be.
func TestReleaseCommits(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	host.Check(t, err)
	dir := checkout(t, "source")
	steps := commandsOf(t, "Before the tag")
	old := newest(t)
	for _, c := range []struct {
		version string
		pages   string // the version that they name
	}{
		{version: "v1.0.0", pages: "v1.0.0"},
		{version: "v1.0.1", pages: "v1.0.1"},
		{version: "v1.1.0-rc.1", pages: "v1.0.1"},
	} {
		t.Run(c.version, func(t *testing.T) {
			script := `sed -i 's/^## \[Unreleased\]/&\n\n### Fixed\n\n- A fix./' CHANGELOG.md
git commit --quiet --all --message fix
` + strings.ReplaceAll(steps, "VERSION", c.version)
			cmd := exec.Command("sh", "-euc", script)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null",
				"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com",
				"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
			output(t, cmd)
			for _, problem := range untrue(t, dir, old, c.pages) {
				t.Error(problem)
			}
			old = c.pages
			if c.version != "v1.0.0" && !host.All() {
				return // one release, and the candidate that this checkout is, are enough here
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

// commandsOf returns the commands that a section of docs/releasing.md shows.
func commandsOf(t *testing.T, heading string) (commands string) {
	t.Helper()
	_, section, found := strings.Cut(string(host.Read(t, "../../docs/releasing.md")), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, match := range regexp.MustCompile(`(?m)^ {7}(\S.*\n)`).FindAllStringSubmatch(section, -1) {
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
