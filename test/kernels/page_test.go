// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/page"
)

var update = flag.Bool("update", false, "write what came of it into docs/kernels.md")

const kernelsPage = top + "/docs/kernels.md"

// came is what came of one kernel. A row is nil if it was not asked for, or failed.
type came struct {
	kernel
	version string
	rows    [][]string // one for each state, then one for the scripts
}

// whole says whether there is a row for each state.
func (c came) whole() bool {
	return !slices.ContainsFunc(c.rows[:len(states)], func(row []string) bool { return row == nil })
}

// compare checks the page, or writes it. Versions move on their own, so they are not compared.
func compare(t *testing.T, all []came) {
	t.Helper()
	content, err := os.ReadFile(kernelsPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, c := range all {
		if !c.whole() {
			continue
		}
		results := table("state", "nf_tables, IPv4 and IPv6", "legacy", "the first call", "a first restore", "a hint is found in", "doctor, first of all")
		for _, row := range c.rows[:len(states)] {
			results += line(row...)
		}
		said := page.Part(t, text, c.name)
		if row := c.rows[len(states)]; row != nil {
			results += line(row...)
		} else if lines := strings.SplitAfter(said, "\n"); len(lines) > 1 {
			results += lines[len(lines)-2] // the scripts were not asked for
		}
		if *update {
			text = page.Replace(t, text, c.name, results)
			text = page.Replace(t, text, "version of "+c.name, fmt.Sprintf("Debian %s, %s.\n", c.suite, c.version))
		} else if said != results {
			t.Errorf("%s says of %s\n%s\nand this came of it:\n%s\nIf that is right: make test-kernels TESTFLAGS=-update", kernelsPage, c.name, said, results)
		}
	}
	if !*update {
		return
	}
	if err := os.WriteFile(kernelsPage, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table(columns ...string) string {
	return line(columns...) + "|" + strings.Repeat(" --- |", len(columns)) + "\n"
}

func line(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
