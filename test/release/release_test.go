// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes a release, and uses what is in it as a user would.
package release

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The commands of docs/releasing.md give a release whose sums are on the pages. Another clone, of another user on
// another machine, gives the same one. Users can add its binary to an image, and the workflow can publish it.
func TestRelease(t *testing.T) {
	host.InFull(t)
	t.Parallel()
	architectures, variable := platforms()
	first := checkout(t, "a")
	version := nextRelease(namedByPages(t, first))
	environment := append(os.Environ(), variable, "VULNDB="+database(t, "net/http.Serve"), "SOURCE_DATE_EPOCH=0")
	run := func(dir, script string, more ...string) {
		t.Helper()
		cmd := exec.Command("sh", "-euc", strings.ReplaceAll(script, "VERSION", version))
		cmd.Dir, cmd.Env = dir, slices.Concat(environment, committer, more)
		output(t, cmd)
	}
	run(first, aFix+commandsOf(t, "Before the tag"))
	second := filepath.Join(t.TempDir(), "another/directory")
	host.Run(t, "git", "clone", "--quiet", first, second)
	run(first, "release/build.sh VERSION")
	run(second, "chmod -R go= . && umask 077 && release/build.sh VERSION", elsewhere(t)...)

	dist := filepath.Join(first, "dist")
	checkFiles(t, dist, version, architectures)
	dated := regexp.MustCompile(`(?m)^.*(govulncheck|openvex).*\n`)
	var sums [2]string
	for i, dir := range []string{first, second} {
		sums[i] = dated.ReplaceAllString(string(host.Read(t, filepath.Join(dir, "dist/SHA256SUMS"))), "")
	}
	if sums[0] != sums[1] {
		t.Errorf("two releases of the same source:\n%s\n%s", sums[0], sums[1])
	}
	t.Run("added", func(t *testing.T) { checkAdded(t, first, version) })
	t.Run("published", func(t *testing.T) { publish(t, first, version, len(architectures)) })
}

// What is not ready for a release is refused before anything is built.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := checkout(t, "source")
	for _, c := range []struct{ version, change, want string }{
		{"1.0.0", "", "is not a version"},
		{"v0.0.1", "", "has no section for v0.0.1"},
		{"v0.0.1", "echo >>Makefile", "uncommitted changes"},
	} {
		cmd := exec.Command("sh", "-c", c.change+"\nexec release/build.sh "+c.version)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
	}
}

// What the binary contains is found, and nothing else: a package and a function that are not linked do not count.
func TestVulnerabilities(t *testing.T) {
	host.InFull(t)
	t.Parallel()
	// With the linker's flags of a release: a stripped binary would fail here.
	binary := filepath.Join(t.TempDir(), "iptables-wrapper")
	cmd := exec.Command("make", "build", "BINARY="+binary)
	cmd.Dir = "../.."
	output(t, cmd)
	for _, c := range []struct {
		functions []string
		status    int
		statuses  []string
	}{
		{[]string{"net/http.Serve", "os.CopyFS"}, 0, []string{"not_affected", "not_affected"}},
		{[]string{"os.CopyFS", "os.Readlink"}, 3, []string{"not_affected", "affected"}},
	} {
		dir := t.TempDir()
		cmd := exec.Command("../../release/vulnerabilities.sh", "v1.2.3", binary, dir)
		cmd.Env = append(os.Environ(), "VULNDB="+database(t, c.functions...))
		said, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.status {
			t.Fatalf("%q: %v\n%s", c.functions, err, said)
		}
		text := string(host.Read(t, dir+"/govulncheck.txt"))
		if strings.Contains(text, "os.Readlink") != (c.status == 3) || !strings.Contains(text, "DB updated: 2026-11") {
			t.Errorf("%q: it says\n%s", c.functions, text)
		}
		var document struct {
			Context    string `json:"@context"`
			Author     string
			Statements []struct {
				Status   string
				Products []struct {
					ID string `json:"@id"`
				}
			}
		}
		host.Check(t, json.Unmarshal(host.Read(t, dir+"/iptables-wrapper.openvex.json"), &document))
		var statuses []string
		for _, statement := range document.Statements {
			statuses = append(statuses, statement.Status)
			if got := statement.Products[0].ID; got != "pkg:golang/"+module+"@v1.2.3" {
				t.Errorf("it is about %q", got)
			}
		}
		if !slices.Equal(statuses, c.statuses) || document.Author != module || document.Context == "" {
			t.Errorf("%q: got %+v", c.functions, document)
		}
	}
}
