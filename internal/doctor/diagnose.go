// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Severity orders findings. Only a problem makes doctor end with status 1.
type Severity string

// The most severe first.
const (
	Problem Severity = "problem"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Where says where a fix is applied.
type Where string

// The places.
const (
	Container Where = "container" // here and now, by the user that runs doctor
	Image     Where = "image"     // and in a container that is made of it
	Pod       Where = "pod"       // in the Pod's spec or the options of docker run, and in a new container
	Node      Where = "node"
)

// Finding is one thing that is wrong, and the first fix for it that can be applied.
type Finding struct {
	Code     string   `json:"code"` // stable, and the anchor of a paragraph in docs/troubleshooting.md
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	Fix      string   `json:"fix"` // after the first line, each line is a command
	Where    Where    `json:"where"`
}

// rule is a row of the tables: a finding for when there is a detail. {} stands for the detail in the texts.
type rule struct {
	code     string
	severity Severity
	detail   string
	text     string
	fixes    fixes // the first that can be applied is printed
}

type fixes []fix

type fix struct {
	applies bool
	where   Where
	text    string
}

// always marks a fix that needs nothing.
const always = true

func only(where Where, text string) fixes { return fixes{{always, where, text}} }

// when is the detail of a rule that applies under a condition.
func when[T ~string](condition bool, detail T) string {
	if condition {
		return string(detail)
	}
	return ""
}

// Diagnose fills in the findings, the most severe first.
func (r *Report) Diagnose() { r.Findings = r.diagnose(r.host(), r.backend(), r.others()) }

// diagnose reports each rule that applies, but of host and backend only the first: the others there are consequences of it,
// or say the same.
func (r *Report) diagnose(host, backend, others []rule) []Finding {
	found := []Finding{}
	for _, severity := range []Severity{Problem, Warning, Note} {
		for _, rule := range slices.Concat(first(host), first(backend), others) {
			if rule.detail = clean(rule.detail); rule.detail == "" || rule.severity != severity {
				continue
			}
			fix := rule.fixes[slices.IndexFunc(rule.fixes, func(f fix) bool { return f.applies })]
			fill := r.placeholders(rule.detail)
			found = append(found, Finding{rule.code, severity, fill.Replace(rule.text), fill.Replace(fix.text), fix.where})
		}
	}
	return found
}

// first returns the first rule that applies, if there is one.
func first(rules []rule) []rule {
	i := slices.IndexFunc(rules, func(r rule) bool { return clean(r.detail) != "" })
	return rules[max(i, 0) : i+1]
}

func (r *Report) placeholders(detail string) *strings.Replacer {
	other := map[detect.Mode]detect.Mode{detect.NFT: detect.Legacy, detect.Legacy: detect.NFT}[r.Host.Mode]
	here := cmp.Or(r.Here.Backend, r.Host.Mode) // the backend that calls use here
	_, because, _ := strings.Cut(r.Host.String(), ": ")
	return strings.NewReplacer("{}", detail, "{variable}", programs.ModeVariable, "{here}", string(here), "{program}", r.Here.Program,
		"{host}", string(r.Host.Mode), "{other}", string(other), "{because}", because, "{dir}", r.dirArgument, "{client}", r.Client)
}

// clean makes one line of a text and removes what a terminal might take for a command.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
}

// stale are the rules about what this container has decided itself, so that a new one of the same Pod would be right.
var stale = []string{"wrong-backend-stored", "wrong-backend-remembered", "two-backends"}

// Stale returns the finding that a new container of the same Pod would not have.
func (r *Report) Stale() *Finding {
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return slices.Contains(stale, f.Code) })
	if i < 0 || r.baked {
		return nil
	}
	return &r.Findings[i]
}
