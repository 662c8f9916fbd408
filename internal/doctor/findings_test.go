// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestFindings(t *testing.T) {
	for _, s := range situations {
		r := healthy()
		s.make(&r)
		r.Diagnose()
		var got []string
		for i, f := range r.Findings {
			got = append(got, fmt.Sprintf("%s %s, %s", f.Severity, f.Code, f.Where))
			if strings.ContainsAny(strings.ReplaceAll(f.Text+f.Fix, ":{}", ""), "{}") {
				t.Errorf("%s: a placeholder is left in %+v", s.doc, f)
			}
			if f.NotSpec != strings.HasPrefix(f.Fix, "delete the Pod") {
				t.Errorf("%s: the wrong place: %+v", s.doc, f)
			}
			if i < len(s.want) {
				want, part, _ := strings.Cut(s.want[i], " -> ")
				if got[i] == want && strings.Contains(f.Text+f.Fix, part) {
					got[i] = s.want[i]
				}
			}
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("%s: got %q, want %q: %+v", s.doc, got, s.want, r.Findings)
		}
	}
}

// Each row of the tables is needed in some situation, and is of a severity that is reported.
func TestEachRule(t *testing.T) {
	tables := func(r Report) [3][]rule { return [3][]rule{r.hostRules(), r.backendRules(), r.others()} }
	for i, table := range tables(healthy()) {
		for j := range table {
			if !slices.Contains(severities, table[j].severity) {
				t.Errorf("%q is never reported: severities, in doctor.go, lacks %q", table[j].code, table[j].severity)
			}
			if !slices.ContainsFunc(situations, func(s situation) bool {
				r := healthy()
				s.make(&r)
				without := tables(r)
				if without[i] == nil { // the image has nothing but the wrapper
					return false
				}
				without[i] = slices.Delete(without[i], j, j+1)
				r.Diagnose()
				return !slices.Equal(r.diagnose(without[0], without[1], without[2]), r.Findings)
			}) {
				t.Errorf("no situation needs %q: add one to those that backend_test.go, others_test.go and "+
					"programs_test.go have", table[j].code)
			}
		}
	}
}

// Each finding is reported by the program in a test of test/script.
func TestEachCodeHasScript(t *testing.T) {
	var scripts strings.Builder
	for _, pattern := range []string{"../../test/script/*.txtar", "../../test/script/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			scripts.Write(host.Read(t, file))
		}
	}
	r := healthy()
	for _, rule := range slices.Concat(r.hostRules(), r.backendRules(), r.others()) {
		if !regexp.MustCompile(`\b` + rule.code + `($|[^\w-])`).MatchString(scripts.String()) {
			t.Errorf("no script of test/script has the finding %q", rule.code)
		}
	}
}

// The page has a paragraph for each code, in alphabetical order.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(page)) {
		if code, found := strings.CutPrefix(line, "### "); found {
			documented = append(documented, strings.TrimSpace(code))
		}
	}
	if !slices.IsSorted(documented) {
		t.Errorf("docs/troubleshooting.md has them in another order: %q", documented)
	}
	r := healthy()
	for _, rule := range slices.Concat(r.hostRules(), r.backendRules(), r.others()) {
		i := slices.Index(documented, rule.code)
		if i < 0 {
			t.Errorf("docs/troubleshooting.md has no heading \"### %s\"", rule.code)
			continue
		}
		documented = slices.Delete(documented, i, i+1)
	}
	if len(documented) > 0 {
		t.Errorf("docs/troubleshooting.md has paragraphs of codes that are none, or twice: %q", documented)
	}
}

// Only a table that others created is reported as one, and a listing that took too long not at all.
func TestUnderstand(t *testing.T) {
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
		r.understand("iptables-save", test.stdout, "", test.err)
		if len(r.Unreadable) != test.unreadable || len(r.unlisted) != test.failed {
			t.Errorf("%q, %v: got %q, %q", test.stdout, test.err, r.Unreadable, r.unlisted)
		}
	}
}
