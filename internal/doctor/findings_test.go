// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"
)

func TestFindings(t *testing.T) {
	for _, s := range situations {
		r := healthy()
		s.make(&r)
		r.Diagnose()
		if len(r.Findings) != len(s.want) {
			t.Errorf("%s: %d findings, want %d: %q", s.doc, len(r.Findings), len(s.want), r.Findings)
			continue
		}
		for i, want := range s.want {
			got := r.Findings[i]
			severity, rest, _ := strings.Cut(want, ": ")
			text, fix, _ := strings.Cut(rest, " ->")
			if string(got.Severity) != severity || !strings.Contains(got.Text, text) || !strings.Contains(got.Fix, strings.TrimSpace(fix)) {
				t.Errorf("%s: got %q, want %q", s.doc, got, want)
			}
			if strings.ContainsAny(got.Text+got.Fix, "{}") {
				t.Errorf("%s: a placeholder is left in %q", s.doc, got)
			}
		}
	}
}

// Each row of the tables is needed in some situation.
func TestEachRule(t *testing.T) {
	tables := func(r Report) [3][]Finding { return [3][]Finding{r.sight(), r.backend(), r.others()} }
	for i, table := range tables(healthy()) {
		for j := range table {
			if !slices.ContainsFunc(situations, func(s situation) bool {
				r := healthy()
				s.make(&r)
				without := tables(r)
				without[i] = slices.Delete(without[i], j, j+1)
				r.Diagnose()
				return !slices.Equal(r.diagnose(without[0], without[1], without[2]), r.Findings)
			}) {
				t.Errorf("no situation needs %q", table[j].Text)
			}
		}
	}
}
