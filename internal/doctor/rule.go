// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// rule is a row of the tables in findings_*.go: a finding for when there is a detail. {} stands for the detail in the
// texts; see fill for the others.
type rule struct {
	code     string
	severity string
	detail   string
	text     string
	fixes    fixes // the first that can be applied is printed
}

type fixes []fix

type fix struct {
	applies bool
	where   string
	text    string
}

// podItself is where a fix is applied that is about the Pod, not about its spec.
const podItself = "the Pod itself"

// always marks a fix that needs nothing.
const always = true

func only(where, text string) fixes { return fixes{{always, where, text}} }

// when is the detail of a rule that applies under a condition.
func when[T ~string](condition bool, detail T) string {
	if condition {
		return string(detail)
	}
	return ""
}

// diagnose reports each rule that applies, but of host and backend only the first: the others there are consequences
// of it, or say the same.
func (r *Report) diagnose(host, backend, others []rule) []Finding {
	found := []Finding{}
	applying := slices.Concat(first(host), first(backend), others)
	for _, severity := range severities {
		for _, rule := range applying {
			if rule.detail != "" && rule.severity == severity {
				found = append(found, r.finding(rule))
			}
		}
	}
	return found
}

// first returns the first rule that applies, if there is one.
func first(rules []rule) []rule {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.detail != "" })
	return rules[max(i, 0) : i+1]
}

func (r *Report) finding(rule rule) Finding {
	i := slices.IndexFunc(rule.fixes, func(f fix) bool { return f.applies })
	fix := rule.fixes[i]
	fill := r.fill(rule.detail)
	where := fix.where
	if where == podItself {
		where = Pod
	}
	return Finding{
		Code:     rule.code,
		Severity: rule.severity,
		Text:     fill.Replace(rule.text),
		Fix:      fill.Replace(fix.text),
		Where:    where,
		NotSpec:  fix.where == podItself,
	}
}

// fill fills in what the texts leave open.
func (r *Report) fill(detail string) *strings.Replacer {
	here := cmp.Or(r.Here.Backend, r.Host.Mode) // the backend that calls use here
	values := []string{
		"{}", strings.Join(strings.Fields(detail), " "),
		"{variable}", programs.ModeVariable,
		"{here}", string(here),
		"{program}", r.Here.Program,
		"{host}", string(r.Host.Mode),
		"{other}", string(otherMode(r.Host.Mode)),
		"{because}", r.Host.Because(),
		"{dir}", r.dirArgument,
		"{client}", r.Client,
	}
	for i, value := range values {
		// An error has several lines, and so may a file's name. Neither may add a command to a fix.
		values[i] = strings.ReplaceAll(value, "\n", " ")
	}
	return strings.NewReplacer(values...)
}

func otherMode(mode detect.Mode) detect.Mode {
	if mode == detect.Legacy {
		return detect.NFT
	}
	return detect.Legacy
}
