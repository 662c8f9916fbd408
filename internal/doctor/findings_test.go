// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
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

// Only a table that others created is reported as one, and a listing that took too long not at all.
func TestListed(t *testing.T) {
	const comment = "# Table `filter' is incompatible, use 'nft' tool.\n"
	for _, test := range []struct {
		stdout             string
		err                error
		unreadable, failed int
	}{
		{"*filter\nCOMMIT\n", nil, 0, 0},
		{comment, nil, 1, 0},
		{"-A INPUT -m comment --comment incompatible\n", errors.New("signal: killed"), 0, 1},
		{comment, errors.New("exit status 4"), 1, 1},
		{"*filter\n", fmt.Errorf("run: %w", context.DeadlineExceeded), 0, 0},
	} {
		var r Report
		if r.listed("iptables-save", test.stdout, "", test.err); len(r.Unreadable) != test.unreadable || len(r.unlisted) != test.failed {
			t.Errorf("%q, %v: got %q, %q", test.stdout, test.err, r.Unreadable, r.unlisted)
		}
	}
}
