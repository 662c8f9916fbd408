// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The modules that go.mod requires are those that docs/security.md gives a reason for, and what it calls "tests only" is not
// linked in: every call pays for what is.
func TestDependencies(t *testing.T) {
	page := read(t, "../docs/security.md")
	info, err := buildinfo.ReadFile(os.Getenv(wrapperVariable))
	host.Check(t, err)
	linked := map[string]bool{}
	for _, module := range info.Deps {
		linked[module.Path] = true
	}
	rows := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z0-9.]+/\S+) \| (tests only)?`).FindAllStringSubmatch(page, -1) {
		if rows[row[1]] = true; linked[row[1]] != (row[2] == "") {
			t.Errorf("%s is in the binary: %v", row[1], linked[row[1]])
		}
	}
	required := host.Run(t, "go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all")
	for module := range strings.FieldsSeq(required) {
		if !rows[module] {
			t.Errorf("docs/security.md does not say why %s is required", module)
		}
	}
	// Of the standard library, what serves neither the kernel nor the command line.
	symbols := read(t, os.Getenv(wrapperVariable))
	for _, unwanted := range []string{"net/http.", "crypto/tls.", "testing.Main", "blackfriday", "go-md2man"} {
		if strings.Contains(symbols, unwanted) {
			t.Errorf("%s is linked in", unwanted)
		}
	}
}

func TestStatic(t *testing.T) {
	f, err := elf.Open(os.Getenv(wrapperVariable))
	host.Check(t, err)
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); len(libraries) > 0 || err != nil && f.Section(".dynamic") != nil {
		t.Errorf("it needs %v, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic loader")
		}
	}
}

// The same source gives the same bytes, wherever it lies.
func TestReproducible(t *testing.T) {
	var builds [2][]byte
	for i, name := range []string{"a", "a longer/path"} {
		dir := filepath.Join(t.TempDir(), name)
		host.Check(t, os.MkdirAll(dir, 0o755))
		for _, part := range []string{"go.mod", "go.sum", "Makefile", "detect", "exec", "internal", "CHANGELOG.md"} {
			host.Run(t, "cp", "-r", "../"+part, dir)
		}
		sources, err := filepath.Glob("../*.go")
		host.Check(t, err)
		host.Run(t, "cp", append(sources, dir)...)
		host.Run(t, "make", "-C", dir, "build", "VERSION=v0.0.0-test")
		if builds[i], err = os.ReadFile(filepath.Join(dir, "bin/iptables-wrapper")); err != nil {
			t.Fatal(err)
		}
		if got := host.Run(t, filepath.Join(dir, "bin/iptables-wrapper"), "--version"); !strings.HasPrefix(got, "iptables-wrapper version v0.0.0-test (") {
			t.Errorf("got version %q", got)
		}
	}
	if !bytes.Equal(builds[0], builds[1]) {
		t.Error("two builds differ")
	}
}

// The list of what is in the binary has what is in it, each with its version.
func TestSBOM(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "iptables-wrapper")
	host.Run(t, "make", "-C", "..", "sbom", "BINARY="+binary)
	var list struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	host.Check(t, json.Unmarshal([]byte(read(t, binary+".cdx.json")), &list))
	info, err := buildinfo.ReadFile(binary)
	host.Check(t, err)
	if list.BOMFormat != "CycloneDX" || len(list.Components) != len(info.Deps) {
		t.Fatalf("got %+v, and in the binary are %d modules", list, len(info.Deps))
	}
	for i, dependency := range info.Deps {
		if c := list.Components[i]; c.Name != dependency.Path || c.Version != dependency.Version {
			t.Errorf("got %+v, want %s %s", c, dependency.Path, dependency.Version)
		}
	}
}

// A workflow runs make targets, and actions that are pinned by digest. Only GitHub can do what the actions do: check out, and
// attest provenance.
func TestWorkflows(t *testing.T) {
	makefile := read(t, "../Makefile")
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflow: %v", err)
	}
	for _, file := range files {
		text := read(t, file)
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Strategy    struct{ Matrix struct{ Go []string } }
				Steps       []struct{ Run, Uses string }
			}
		}
		if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if workflow.Permissions == nil || len(workflow.Permissions) > 0 {
			t.Errorf("%s: it gives each job %v", file, workflow.Permissions)
		}
		for name, job := range workflow.Jobs {
			if len(job.Permissions) == 0 || len(job.Steps) == 0 {
				t.Errorf("%s: job %s: %v, %d steps", file, name, job.Permissions, len(job.Steps))
			}
			for _, step := range job.Steps {
				run := regexp.MustCompile(`^(?:sudo (?:--preserve-env=\w+ )?env "PATH=\$PATH" )?make (\w+)(?: VERSION="\$GITHUB_REF_NAME")?$`).FindStringSubmatch(step.Run)
				switch {
				case step.Uses != "":
					if !regexp.MustCompile(`^actions/(checkout|attest-build-provenance)@[0-9a-f]{40}$`).MatchString(step.Uses) || !strings.Contains(text, step.Uses+" # v") {
						t.Errorf("%s: %s is not pinned, or another action", file, step.Uses)
					}
				case run == nil:
					t.Errorf("%s: %q is no make target", file, step.Run)
				case !regexp.MustCompile(`(?m)^` + run[1] + `:`).MatchString(makefile):
					t.Errorf("%s: the Makefile has no %s", file, run[1])
				}
			}
			// The release that go.mod builds with, and a newer one.
			if versions := job.Strategy.Matrix.Go; len(versions) > 0 {
				if len(versions) != 2 || !strings.Contains(read(t, "../go.mod"), "\ntoolchain "+versions[0]+"\n") || versions[1] <= versions[0] {
					t.Errorf("%s: matrix %q", file, versions)
				}
			}
		}
	}
}
