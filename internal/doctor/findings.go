// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// A rule is one row of a table. It applies where there is a detail. Its text and its fix are then a finding, with the
// placeholders filled in: {} is the detail.
type rule struct {
	severity Severity
	detail   string
	text     string
	fix      string
}

// where is the detail of a rule that applies under a condition.
func where[T ~string](condition bool, detail T) string {
	if condition {
		return string(detail)
	}
	return ""
}

// Diagnose fills in the findings, the most severe first.
func (r *Report) Diagnose() { r.Findings = r.diagnose(r.sight(), r.backend(), r.others()) }

// diagnose reports each rule that applies, but of sight and backend only the first: the others there are consequences of it,
// or say the same.
func (r *Report) diagnose(sight, backend, others []rule) []Finding {
	found := []Finding{}
	for _, rule := range slices.Concat(first(sight), first(backend), others) {
		if detail := clean(rule.detail); detail != "" {
			fill := r.placeholders(detail)
			found = append(found, Finding{rule.severity, fill.Replace(rule.text), fill.Replace(rule.fix)})
		}
	}
	order := []Severity{Problem, Warning, Note}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return found
}

// first returns the first rule that applies, if there is one.
func first(rules []rule) []rule {
	for _, r := range rules {
		if clean(r.detail) != "" {
			return []rule{r}
		}
	}
	return nil
}

func (r *Report) placeholders(detail string) *strings.Replacer {
	other := detect.NFT
	if r.Host.Mode == detect.NFT {
		other = detect.Legacy
	}
	here := r.Here.Backend // the backend that calls use here
	if here == "" {
		here = r.Host.Mode
	}
	_, because, _ := strings.Cut(r.Host.String(), ": ")
	return strings.NewReplacer("{}", detail, "{variable}", programs.ModeVariable, "{here}", string(here), "{program}", r.Here.Program,
		"{host}", string(r.Host.Mode), "{other}", string(other), "{because}", because)
}

// clean makes one line of a text and removes what a terminal might take for a command.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
}
