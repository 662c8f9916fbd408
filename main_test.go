// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/iptables-wrappers/iptables-wrappers/"

// linked are all packages of this repository that a wrapped call links: what one has to read in order to trust it.
var linked = strings.Fields("detect exec internal/call internal/file internal/iptables internal/link internal/nft " +
	"internal/plan internal/remedy internal/xtables")

// A wrapped call pays for what it links, and whoever trusts it has to read that: no other package of this repository,
// and nothing that brings in the command line's library, JSON or os/exec. docs/security.md says how many lines it is.
func TestLinked(t *testing.T) {
	output, err := exec.Command("go", "list", "-deps", "./internal/call").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(output))
	for _, unwanted := range []string{"encoding/json", "os/exec", "net", "github.com/urfave/cli/v2"} {
		if slices.Contains(all, unwanted) {
			t.Errorf("it links %q", unwanted)
		}
	}
	var own []string
	lines := 0
	for _, dependency := range all {
		dir, isOwn := strings.CutPrefix(dependency, module)
		if isOwn {
			own = append(own, dir)
			lines += count(t, dir)
		}
	}
	slices.Sort(own)
	if !slices.Equal(own, linked) {
		t.Errorf("it links %q", own)
	}
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	thousands, hundreds := (lines+50)/1000, (lines+50)/100%10
	number := fmt.Sprintf("about %d,%d00 lines", thousands, hundreds)
	if !bytes.Contains(page, []byte(number)) {
		t.Errorf("docs/security.md does not say %q: it links %d lines", number, lines)
	}
}

// count returns the number of lines of a package, without its tests.
func count(t *testing.T, dir string) (lines int) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(content, []byte("\n"))
	}
	return lines
}
