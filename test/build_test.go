// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The modules that go.mod requires are those that docs/security.md gives a reason for, so is what is linked in, and
// what the page calls "tests only" is not: every call pays for what is.
func TestDependencies(t *testing.T) {
	page := read(t, "../docs/security.md")
	rows := map[string]bool{} // whether it is linked in
	reasons := regexp.MustCompile(`(?m)^\| ([a-z0-9.]+/\S+) \| (tests only)?`)
	for _, row := range reasons.FindAllStringSubmatch(page, -1) {
		rows[row[1]] = row[2] == ""
	}
	info, err := buildinfo.ReadFile(os.Getenv(host.WrapperVariable))
	host.Check(t, err)
	linked := map[string]bool{}
	for _, module := range info.Deps {
		linked[module.Path] = true
	}
	for module, want := range rows {
		if linked[module] != want {
			t.Errorf("%s is in the binary: %v", module, !want)
		}
	}
	for module := range linked {
		if !rows[module] {
			t.Errorf("docs/security.md does not say why %s is linked in", module)
		}
	}
	// Whoever imports a package of this module gets what it requires. What only tests need is in modules of their own.
	required := host.Run(t, "go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all")
	got := slices.Sorted(strings.FieldsSeq(required))
	want := []string{"github.com/coreos/go-iptables", "github.com/urfave/cli/v2", "golang.org/x/sys"}
	if !slices.Equal(got, want) {
		t.Errorf("go.mod requires %q, want %q", got, want)
	}
	for _, module := range got {
		_, explained := rows[module]
		if !explained {
			t.Errorf("docs/security.md does not say why %s is required", module)
		}
	}
	// Of the standard library, what serves neither the kernel nor the command line.
	symbols := read(t, os.Getenv(host.WrapperVariable))
	for _, unwanted := range []string{"net/http.", "crypto/tls.", "testing.Main", "blackfriday", "go-md2man"} {
		if strings.Contains(symbols, unwanted) {
			t.Errorf("%s is linked in", unwanted)
		}
	}
	program, err := elf.Open(os.Getenv(host.WrapperVariable))
	host.Check(t, err)
	defer program.Close()
	if program.Section(".interp") != nil || program.Section(".dynamic") != nil {
		t.Error("it is not static")
	}
}

// A workflow runs make targets, and actions that are pinned by digest. Only GitHub can do what the actions do: check
// out, pass files from job to job, and attest provenance. A job that tests or builds has no right to write.
func TestWorkflows(t *testing.T) {
	makefile := read(t, "../Makefile")
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflow: %v", err)
	}
	toolchain := regexp.MustCompile(`\ntoolchain (\S+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	action := regexp.MustCompile(`^actions/(checkout|attest-build-provenance|upload-artifact|download-artifact)` +
		`@[0-9a-f]{40} # v`)
	target := regexp.MustCompile(`^(?:sudo (?:--preserve-env=\w+ )?env "PATH=\$PATH" )?` +
		`make ([\w-]+)(?: VERSION="\$GITHUB_REF_NAME"| SUITE=\$\{\{ matrix\.suite \}\})?$`)
	for _, file := range files {
		text := read(t, file)
		if !strings.Contains(text, "\npermissions: {}\n") {
			t.Errorf("%s: it gives each job rights", file)
		}
		for _, job := range regexp.MustCompile(`(?m)^  [a-z-]+:$`).Split(text, -1)[1:] {
			if regexp.MustCompile(`make (ci|nightly|test|fresh|release|vulncheck)\b`).MatchString(job) &&
				strings.Contains(job, ": write") {
				t.Errorf("%s: what tests or builds may write:\n%s", file, job)
			}
		}
		for _, step := range regexp.MustCompile(`(?m)^ +(?:- )?(uses|run|go): (.*)$`).FindAllStringSubmatch(text, -1) {
			run := target.FindStringSubmatch(step[2])
			switch {
			case step[1] == "uses" && !action.MatchString(step[2]):
				t.Errorf("%s: %s is not pinned, or another action", file, step[2])
			case step[1] == "run" && (run == nil || !regexp.MustCompile(`(?m)^`+run[1]+`:`).MatchString(makefile)):
				t.Errorf("%s: %q is no make target", file, step[2])
			case step[1] == "go" && !strings.HasPrefix(step[2], "["+toolchain+", go1."): // and a newer one
				t.Errorf("%s: matrix %q", file, step[2])
			}
		}
	}
}
