// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The page and the picture are those of the raw data.
func TestDrawn(t *testing.T) {
	raw, err := os.ReadFile("../../docs/evidence/" + rawData)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, rawData), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := draw(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"benchmarks.md", "benchmarks.svg"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile("../../docs/evidence/" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/evidence/%s is not what its data say (%v): go run ./test/bench -draw", name, err)
		}
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := sentence(r); !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), want) {
		t.Errorf("the README does not say: %s", want)
	}
}

// A short run, for what does not depend on the machine's speed.
func TestBench(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make namespaces and mounts: run it as root")
	}
	dir := t.TempDir()
	bench := filepath.Join(dir, "bench")
	host.Run(t, "go", "build", "-o", bench, ".")
	cmd := exec.Command(bench, "-runs", "3", "-rules", "0,5000", "-architectures", "amd64", "-out", dir)
	cmd.Dir = "../.."
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	raw, err := os.ReadFile(filepath.Join(dir, rawData))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Measurements) != 8 {
		t.Errorf("%d measurements", len(r.Measurements))
	}
	for _, m := range r.Measurements {
		if m.Processes != 0 {
			t.Errorf("%s, %d rules: it starts %d processes", m.State, m.State.Rules, m.Processes)
		}
		if m.Questions == 0 || m.State.Hint && m.Questions > 6 {
			t.Errorf("%s, %d rules: %d questions", m.State, m.State.Rules, m.Questions)
		}
		if m.Memory == 0 || m.Memory > 16<<10 {
			t.Errorf("%s, %d rules: %d KiB", m.State, m.State.Rules, m.Memory)
		}
	}
}
