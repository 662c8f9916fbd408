// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/page"
)

var update = flag.Bool("update", false, "write the results into docs/evidence/kernels.md")

const kernelsPage = top + "/docs/evidence/kernels.md"

// outcome is what one kernel did.
type outcome struct {
	kernel
	version string              // "" if it was not booted
	guests  int                 // that it was booted for
	boots   int                 // that these took
	rows    map[string][]string // by the first cell; without those that were not asked for, or failed
}

var columns = []string{
	"state", "nf_tables, IPv4 and IPv6", "legacy", "can take the rules", "detect", "the first restore", "a hint is found in", "doctor",
}

// label is the first cell of a state's row.
func (s state) label() string { return "`" + s.name + "`: " + s.is }

// notRun is what the page says of a kernel that has not been booted for a state since that is there.
const notRun = "not run"

const scriptsLabel = "`" + scripts + "`: those of test/script"

// results are the page's two tables: the states as they are on the newest kernel, and the rows of other kernels that differ.
type results struct{ states, exceptions []string }

func read(t *testing.T, text string) results {
	t.Helper()
	return results{
		strings.SplitAfter(page.Part(t, text, "states"), "\n"), strings.SplitAfter(page.Part(t, text, "exceptions"), "\n"),
	}
}

// of returns what the page says of a kernel in a state, "" if nothing.
func (r results) of(kernel, label string) string {
	own := "| " + kernel + " "
	for _, l := range r.exceptions {
		if strings.HasPrefix(l, own+"| "+label+" |") {
			return strings.TrimPrefix(l, own)
		}
	}
	for _, l := range r.states {
		if strings.HasPrefix(l, "| "+label+" |") {
			return l
		}
	}
	return ""
}

// compare checks the page. With -update it writes what has been run into it. Versions move on their own and boots go wrong
// on their own, so they are not compared.
func compare(t *testing.T, all []outcome) {
	t.Helper()
	content, err := os.ReadFile(kernelsPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	said := read(t, text)
	if *update {
		if err := os.WriteFile(kernelsPage, []byte(renew(t, text, said, all)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, o := range all {
		for label, row := range o.rows {
			switch got := line(row...); said.of(o.name, label) {
			case got:
			case line(label, notRun):
				t.Logf("%s does not say yet of %s\n%s", kernelsPage, o.name, got)
			default:
				t.Errorf("%s says of %s\n%snot\n%sIf that is right: make test-kernels TESTFLAGS=-update", kernelsPage, o.name, said.of(o.name, label), got)
			}
		}
	}
}

// renew returns the page with what has been run. The rest stays as it was.
func renew(t *testing.T, text string, said results, all []outcome) string {
	t.Helper()
	states, exceptions := table(columns...), ""
	for _, label := range labels() {
		row := func(o outcome) string {
			if row := o.rows[label]; row != nil {
				return line(row...)
			}
			if before := said.of(o.name, label); before != line(label, notRun) {
				return before
			}
			return ""
		}
		newest := ""
		for _, o := range slices.Backward(all) {
			newest = cmp.Or(newest, row(o))
		}
		newest = cmp.Or(newest, line(label, notRun))
		for _, o := range all {
			if got := cmp.Or(row(o), line(label, notRun)); got != newest {
				exceptions += "| " + o.name + " " + got
			}
		}
		states += newest
	}
	if exceptions == "" {
		exceptions = "None: all kernels give the same results.\n"
	} else {
		exceptions = table(append([]string{"kernel"}, columns...)...) + exceptions
	}
	booted := strings.SplitAfter(page.Part(t, text, "kernels"), "\n")
	kernels := table("kernel", "Debian", "package", "guests", "boots that ended in the emulator and were repeated")
	for _, o := range all {
		if len(o.rows) > 0 {
			kernels += line(o.name, o.suite, o.version, fmt.Sprint(o.guests), fmt.Sprint(o.boots-o.guests))
		} else if i := slices.IndexFunc(booted, func(l string) bool { return strings.HasPrefix(l, "| "+o.name+" |") }); i >= 0 {
			kernels += booted[i]
		}
	}
	for name, part := range map[string]string{"kernels": kernels, "states": states, "exceptions": exceptions} {
		text = page.Replace(t, text, name, part)
	}
	return text
}

// labels are the first cells of the page's rows.
func labels() (all []string) {
	for _, g := range groups {
		for _, s := range g.states {
			all = append(all, s.label())
		}
	}
	return append(all, scriptsLabel)
}

func table(columns ...string) string {
	return line(columns...) + "|" + strings.Repeat(" --- |", len(columns)) + "\n"
}

func line(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
