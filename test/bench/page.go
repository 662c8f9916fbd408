// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/template"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
)

// write makes the page and the picture from what was measured.
func write(data, out string) error {
	raw, err := os.ReadFile(data)
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	page, err := page(r, fmt.Sprintf("%x", sha256.Sum256(raw)))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "benchmarks.md"), page, 0o644); err != nil {
		return err
	}
	if r.Before != "" {
		table, err := compared(r)
		if err != nil {
			return err
		}
		fmt.Printf("%s", table)
	}
	picture, err := picture(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "benchmarks.svg"), picture, 0o644)
}

//go:embed page.md.tmpl
var text string

// page is docs/evidence/benchmarks.md.
func page(r report, sum string) ([]byte, error) { return fill(text, r, sum) }

//go:embed before.md.tmpl
var comparison string

// compared is a table that compares with the revision before. It is printed, and in no page.
func compared(r report) ([]byte, error) { return fill(comparison, r, "") }

func fill(text string, r report, sum string) ([]byte, error) {
	functions := template.FuncMap{
		"title": title,
		"direct": func(m measure.Result) string {
			return fmt.Sprintf("%.2f", summary(values(m.Samples["direct"], measure.Wall)).Center)
		},
		"over": func(m measure.Result, program string, metric int) string {
			return plus(summary(over(m, program, metric)))
		},
		"change": change,
		"runs":   func(m measure.Result, program string) bool { return m.Samples[program] != nil },
		"middle": func(m measure.Result, program string, metric int) string {
			return fmt.Sprintf("%.0f", summary(values(m.Samples[program], metric)).Center)
		},
		"calls": func(m measure.Result, program string) string {
			if m.Calls[program] == 0 {
				return "not counted"
			}
			return fmt.Sprint(m.Calls[program])
		},
		"saves": func(m measure.Result, metric int) string {
			return thousands(int(summary(values(m.Samples["saves"], metric)).Center + 0.5))
		},
	}
	t, err := template.New("").Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		report
		Sum, Sentence string
	}{r, sum, sentence(r)})
	return b.Bytes(), err
}

func span(all []float64) string {
	if all == nil {
		return "?"
	}
	return fmt.Sprintf("%.1f to %.1f ms", slices.Min(all), slices.Max(all))
}

// sentence begins the page. It is about processor time, which a noisy machine changes less.
func sentence(r report) string {
	var floor, saves []float64
	var even measure.Result
	var dry, cold float64
	for _, m := range r.Results {
		if m.Row.Name == nothing {
			dry = summary(over(m, "wrapped", measure.Wall)).Center
		}
		if m.Row.Cold {
			cold = summary(over(m, "wrapped", measure.CPU)).Center
		}
		if saved := m.Samples["saves"]; saved != nil {
			floor = append(floor, summary(over(m, "floor", measure.CPU)).Center)
			saves = append(saves, summary(values(saved, measure.CPU)).Center)
		}
		if allCounted(m.Row) {
			even = m
		}
	}
	if saves == nil || even.Samples == nil || reading(r) == nil {
		return "A part of the rows."
	}
	return fmt.Sprintf("If a marker decides, or only nft has rules, a first call costs %s of processor time more than "+
		"a direct one, whatever the number of rules and chains (%.1f ms with a cold page cache); "+
		"%.1f ms of it is starting a Go program. "+
		"Where nothing is found, it takes %.0f ms of wall time, most of it waiting for the kernel. "+
		"Where nothing but legacy's rules decides, its tables are read, up to 4 MiB each: %.0f ms at most. "+
		"If both backends have about the same number of rules, they are counted: %.0f ms for %s in each. "+
		"For comparison: a script's four `iptables-save` cost %.1f ms without rules and %.1f s with %s.",
		span(firstCalls(r)), cold, summary(floor).Center, dry, slices.Max(reading(r)),
		summary(over(even, "wrapped", measure.CPU)).Center, thousands(even.Row.NFT.Rules),
		slices.Min(saves), slices.Max(saves)/1000, thousands(counts[len(counts)-1]/r.Scale))
}

// allCounted reports that each rule is counted: both backends have about as many, and no program of the host decides.
func allCounted(row measure.Row) bool {
	return row.Legacy.Rules > 0 && row.NFT.Rules == row.Legacy.Rules+1 && !row.Program
}

// single reports that a row measures one first call.
func single(m measure.Result) bool {
	return m.Row.AtOnce == 0 && m.Row.Calls == 0 && !m.Row.Recorded && m.Samples["wrapped"] != nil
}

// readsLegacy reports that legacy's tables are read, because nothing else decides.
func readsLegacy(row measure.Row) bool { return !row.Hint && row.Legacy.Rules > 1 }

// firstCalls are what the wrapper costs in each row of one first call, except where legacy's tables are read, and where
// the page cache is cold: the sentence names these.
func firstCalls(r report) (wrapped []float64) {
	for _, m := range r.Results {
		if single(m) && !readsLegacy(m.Row) && !m.Row.Cold {
			wrapped = append(wrapped, summary(over(m, "wrapped", measure.CPU)).Center)
		}
	}
	return wrapped
}

// reading are what the wrapper costs where legacy's tables are read, and nft has no rules to be counted.
func reading(r report) (wrapped []float64) {
	for _, m := range r.Results {
		if single(m) && readsLegacy(m.Row) && m.Row.NFT.Rules <= 1 {
			wrapped = append(wrapped, summary(over(m, "wrapped", measure.CPU)).Center)
		}
	}
	return wrapped
}
