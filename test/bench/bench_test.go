// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A short run of a few rows makes a page and a picture, and says of which tree.
func TestBench(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make namespaces and mounts: run it as root")
	}
	dir := t.TempDir()
	bench := filepath.Join(dir, "bench")
	host.Run(t, "go", "build", "-o", bench, ".")
	cmd := exec.Command(bench, "-quick", "-only", "^no hint, legacy: 250 rules|cold",
		"-data", dir+"/data", "-out", dir)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	page, err := os.ReadFile(dir + "/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	// time, memory, four iptables-save
	if got := strings.Count(string(page), "| no hint, legacy: 250 rules |"); got != 3 {
		t.Errorf("a row is there %d times:\n%s", got, page)
	}
	picture, err := os.ReadFile(dir + "/benchmarks.svg")
	if err != nil || !strings.Contains(string(picture), "no hint, legacy") {
		t.Errorf("%v in %s", err, picture)
	}
}

// The wrapper's interval is in times of the floor's median.
func TestRatio(t *testing.T) {
	var r measure.Result
	r.Samples = map[string][]measure.Cost{}
	for i := range 101 {
		noise := float64(i % 10) // of the machine, and so of all in a round
		r.Samples["direct"] = append(r.Samples["direct"], measure.Cost{1 + noise})
		r.Samples["floor"] = append(r.Samples["floor"], measure.Cost{3 + noise})
		r.Samples["wrapped"] = append(r.Samples["wrapped"], measure.Cost{4 + noise})
	}
	if got := times(ratio(r, measure.Wall)); got != "**1.50×** 1.50–1.50" {
		t.Error(got)
	}
}
