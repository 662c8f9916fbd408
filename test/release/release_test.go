// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes a release, and uses what is in it as a user would.
package release

import (
	"debug/elf"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// machines are the ELF machines of the platforms, by the ends of the binaries' names.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "armv7": elf.EM_ARM, "ppc64le": elf.EM_PPC64,
	"riscv64": elf.EM_RISCV, "s390x": elf.EM_S390,
}

// platforms are those that a release is made for here: two of them, because each takes a build of Go's library.
func platforms() (architectures []string, variable string) {
	if host.All() {
		return slices.Sorted(maps.Keys(machines)), "PLATFORMS="
	}
	return []string{"amd64", "arm64"}, "PLATFORMS=linux/amd64 linux/arm64"
}

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

// elsewhere is the environment of another machine: its modules are somewhere else, and its Go builds for newer
// processors, with another linker, other cryptography, and in a workspace.
func elsewhere(t *testing.T) []string {
	t.Helper()
	modules := filepath.Join(t.TempDir(), "modules")
	cache := strings.TrimSpace(host.Run(t, "go", "env", "GOMODCACHE"))
	host.Check(t, os.Symlink(cache, modules)) // to unpack them all there takes longer than the release itself
	workspace := filepath.Join(t.TempDir(), "go.work")
	host.Check(t, os.WriteFile(workspace, []byte("go 1.25.0\n"), 0o644))
	return []string{
		"GOMODCACHE=" + modules, "GOAMD64=v3", "GOFLAGS=-tags=another", "GOFIPS140=latest", "GOWORK=" + workspace,
		"GO_EXTLINK_ENABLED=1",
	}
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

// database makes a database of vulnerabilities, each of one function of Go's library, and returns its URL.
func database(t *testing.T, functions ...string) string {
	t.Helper()
	dir := t.TempDir()
	const date = "2026-11-01T00:00:00Z"
	write := func(name string, value any) {
		t.Helper()
		content, err := json.Marshal(value)
		host.Check(t, err)
		host.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		host.Check(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	type object = map[string]any
	var module, all []object
	for i, function := range functions {
		id := "GO-2026-000" + string(rune('1'+i))
		dot := strings.LastIndex(function, ".")
		write("ID/"+id+".json", object{
			"schema_version": "1.3.1", "id": id, "modified": date, "published": date, "summary": function,
			"database_specific": object{"url": "https://pkg.go.dev/vuln/" + id},
			"affected": []object{{
				"package": object{"name": "stdlib", "ecosystem": "Go"},
				"ranges":  []object{{"type": "SEMVER", "events": []object{{"introduced": "0"}, {"fixed": "1.99.0"}}}},
				"ecosystem_specific": object{
					"imports": []object{{"path": function[:dot], "symbols": []string{function[dot+1:]}}},
				},
			}},
		})
		module = append(module, object{"id": id, "modified": date, "fixed": "1.99.0"})
		all = append(all, object{"id": id, "modified": date})
	}
	write("index/db.json", object{"modified": date})
	write("index/modules.json", []object{{"path": "stdlib", "vulns": module}})
	write("index/vulns.json", all)
	return "file://" + dir
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
