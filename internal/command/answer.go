// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"strconv"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// report is what detect prints as JSON: docs/detect.schema.json. What was not asked is left out.
type report struct {
	Version int `json:"version"`
	detect.Result
	Because string                    `json:"because"`
	Errors  map[detect.Backend]string `json:"errors,omitempty"` // what could not be asked
	Here    here.Here                 `json:"here"`
}

// schemaVersion is the version of the JSON. Within a version, fields and words are added; none changes or is removed.
const schemaVersion = 1

func newReport(r detect.Result) report {
	a := report{
		Version: schemaVersion,
		Result:  r,
		Because: r.Because(),
		Errors:  map[detect.Backend]string{},
		Here:    here.Look(r),
	}
	for _, b := range detect.Backends() {
		err := r.Evidence.Of(b).Err
		if err != nil {
			a.Errors[b] = err.Error()
		}
	}
	return a
}

// printTable prints all evidence, for people.
func (s *session) printTable(a report) {
	certain := "certain"
	if !a.Certain {
		certain = "not certain"
	}
	s.answer("host:           %s (%s: %s)", a.Backend, certain, a.Because)
	s.answer("iptables here:  %s", a.Here)

	kernels := [][]string{{"BACKEND", "KERNEL", "RULES"}}
	kinds := [][]string{{"BACKEND", "FAMILY", "HINT", "CANARY", "PROGRAM"}}
	names := [][]string{{"NAME OF", "BACKEND", "FAMILY", "TABLE", "CHAIN"}}
	for _, b := range detect.Backends() {
		f := a.Evidence.Of(b)
		kernels = append(kernels, []string{string(b), f.Kernel.String(), rules(f)})
		for _, family := range [...]detect.Family{detect.IPv4, detect.IPv6} {
			kinds = append(kinds, []string{
				string(b), family.String(),
				f.Hint[family].String(), f.Canary[family].String(), f.Program[family].String(),
			})
		}
		for _, n := range f.Names {
			names = append(names, []string{n.Program, string(b), n.Family.String(), n.Table, cmp.Or(n.Chain, "-")})
		}
	}
	s.table(kernels...)
	s.table(kinds...)
	s.table(names...)

	s.answer("")
	s.answer("KERNEL: the running kernel has nf_tables, or has x_tables loaded.")
	s.answer("RULES: of both families, whoever made them.")
	s.answer("HINT, CANARY, PROGRAM: a chain of kubelet, or a chain or table that only a program of the host makes.")
	if a.Evidence.Lacks != "" {
		s.answer("nf_tables cannot take iptables' rules: it lacks %s.", a.Evidence.Lacks)
	}
	for _, b := range detect.Backends() {
		if a.Errors[b] != "" {
			s.answer("%s: %s", b, a.Errors[b])
		}
	}
}

// rules says how many there are.
func rules(f detect.Findings) string {
	if f.Counted == detect.Yes {
		return strconv.Itoa(f.Rules)
	}
	return "at least " + strconv.Itoa(f.Rules)
}
