// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The test is the program where it has its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	os.Exit(m.Run())
}

// A short run of a few rows makes a page and a picture, and says of which tree.
func TestBench(t *testing.T) {
	host.NeedsRoot(t, "make namespaces and mounts")
	dir := t.TempDir()
	bench, err := os.Executable()
	host.Check(t, err)
	only := "^no hint, legacy: 5,000 rules"
	if host.All() {
		only += "|cold"
	}
	cmd := exec.Command(bench, "-quick", "-only", only, "-data", dir+"/data", "-out", dir)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	page, err := os.ReadFile(dir + "/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	// what a call costs, and what four iptables-save do
	if got := strings.Count(string(page), "| no hint, legacy: 5,000 rules |"); got != 2 {
		t.Errorf("a row is there %d times:\n%s", got, page)
	}
	picture, err := os.ReadFile(dir + "/benchmarks.svg")
	if err != nil || !strings.Contains(string(picture), "no hint, legacy") {
		t.Errorf("%v in %s", err, picture)
	}
}
