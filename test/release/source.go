// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

const module = "github.com/iptables-wrappers/iptables-wrappers"

// tag is a version that nothing else has.
const tag = "v1.2.3"

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	return strings.TrimSuffix(host.Output(t, cmd), "\n")
}

// source is the directory of a repository that commit has made.
var source string

// commit makes a repository of its own from the files here, changed ones included, with one commit whose bytes do not
// depend on who makes it, or when.
var commit = sync.OnceValue(func() error {
	var err error
	source, err = os.MkdirTemp("", "source")
	if err != nil {
		return err
	}
	err = host.Sources("../..", source)
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-euc", `
git init --quiet --initial-branch main
git add --all
git -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message test
git repack -adq # one file to copy instead of hundreds
`)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-21T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-21T12:00:00Z",
		"GIT_CONFIG_GLOBAL=/dev/null")
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("commit the files: %w\n%s", err, said)
	}
	return nil
})

// checkout is a copy of that repository, for a test to change.
func checkout(t *testing.T, name string) string {
	t.Helper()
	host.Check(t, commit())
	dir := filepath.Join(t.TempDir(), name)
	host.Check(t, os.MkdirAll(dir, 0o755))
	host.Run(t, "cp", "-a", source+"/.", dir)
	host.Check(t, os.Chmod(dir, 0o755))
	return dir
}

// fromRepository is an environment in which the repository on GitHub is this one. What else a module needs is taken
// from the cache, if it is there.
func fromRepository(t *testing.T, dir string) []string {
	t.Helper()
	env := strings.Fields(host.Run(t, "go", "env", "GOMODCACHE", "GOPROXY"))
	return append(os.Environ(),
		"GOPRIVATE="+module,
		"GOFLAGS=-modcacherw -trimpath",
		"GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+env[0]+"/cache/download,"+env[1],
		"CGO_ENABLED=0",
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url."+dir+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+module,
	)
}
