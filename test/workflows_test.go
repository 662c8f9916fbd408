// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
