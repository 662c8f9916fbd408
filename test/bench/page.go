// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
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
	picture, err := picture(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "benchmarks.svg"), picture, 0o644)
}

//go:embed page.md.tmpl
var text string

// page is docs/evidence/benchmarks.md.
func page(r report, sum string) ([]byte, error) {
	functions := template.FuncMap{
		"q":     func(s string) string { return "`" + s + "`" },
		"title": title,
		"direct": func(m measure.Result) string {
			return fmt.Sprintf("%.2f", summary(values(m.Samples["direct"], measure.Wall)).Center)
		},
		"over": func(m measure.Result, program string, metric int) string {
			return plus(summary(over(m, program, metric)))
		},
		"ratio":  func(m measure.Result, metric int) string { return times(ratio(m, metric)) },
		"missed": func(m measure.Result) bool { return !m.Row.Adding && ratio(m, measure.CPU).Center > target(m.Row) },
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
		Sum, Sentence, WithHint string
	}{r, sum, sentence(r), withHint(r)})
	return b.Bytes(), err
}

// target is how many times the floor a row may cost.
func target(r measure.Row) float64 {
	if r.Cold {
		return 2
	}
	return 1.5
}

// withHint is the median of the rows with a hint.
func withHint(r report) string {
	all := []float64{math.NaN()}
	for _, m := range r.Results {
		if m.Row.Hint && !m.Row.Cold {
			all = append(all, ratio(m, measure.CPU).Center)
		}
	}
	return fmt.Sprintf("%.2f×", summary(all[min(1, len(all)-1):]).Center)
}

// sentence is also in the README. It is about processor time, which a noisy machine changes less.
func sentence(r report) string {
	var wrapped, floor, saves []float64
	for _, m := range r.Results {
		if saved := m.Samples["saves"]; saved != nil {
			wrapped = append(wrapped, summary(over(m, "wrapped", measure.CPU)).Center)
			floor = append(floor, summary(over(m, "floor", measure.CPU)).Center)
			saves = append(saves, summary(values(saved, measure.CPU)).Center)
		}
	}
	if saves == nil {
		return "A part of the rows."
	}
	return fmt.Sprintf("A first call costs %.1f to %.1f ms of processor time more than a direct one, however many rules the host has; %.1f ms of that is starting any static "+
		"Go program. Detecting with four `iptables-save` processes costs %.1f ms without rules and up to %.1f s with %s.",
		slices.Min(wrapped), slices.Max(wrapped), summary(floor).Center, slices.Min(saves), slices.Max(saves)/1000, thousands(counts[len(counts)-1]/r.Scale))
}
