// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"strconv"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// report is the JSON that detect prints: docs/detect.schema.json. Questions that were not asked are left out.
type report struct {
	Version int `json:"version"`
	detect.Result
	Because string                    `json:"because"`
	Errors  map[detect.Backend]string `json:"errors,omitempty"` // the questions that failed
	Here    here.Here                 `json:"here"`
}

// schemaVersion is the version of the JSON. Within a version, fields and words may be added; none changes or is
// removed.
const schemaVersion = 1

func newReport(r detect.Result) report {
	rep := report{
		Version: schemaVersion,
		Result:  r,
		Because: r.Because(),
		Errors:  map[detect.Backend]string{},
		Here:    here.Look(r),
	}
	for _, b := range detect.Backends() {
		err := r.Evidence.Of(b).Err
		if err != nil {
			rep.Errors[b] = err.Error()
		}
	}
	return rep
}

// printTable prints all evidence, for people.
func (s *session) printTable(rep report) {
	certain := "certain"
	if !rep.Certain {
		certain = "not certain"
	}
	s.print("host:           %s (%s: %s)", rep.Backend, certain, rep.Because)
	s.print("iptables here:  %s", rep.Here)

	kernels := [][]string{{"BACKEND", "KERNEL", "RULES"}}
	kinds := [][]string{{"BACKEND", "FAMILY", "HINT", "CANARY", "PROGRAM"}}
	names := [][]string{{"NAME OF", "BACKEND", "FAMILY", "TABLE", "CHAIN"}}
	for _, b := range detect.Backends() {
		f := rep.Evidence.Of(b)
		kernels = append(kernels, []string{string(b), string(f.Kernel), rules(f)})
		for _, family := range [...]detect.Family{detect.IPv4, detect.IPv6} {
			kinds = append(kinds, []string{
				string(b), family.String(),
				string(f.Hint[family]), string(f.Canary[family]), string(f.Program[family]),
			})
		}
		for _, n := range f.Names {
			names = append(names, []string{n.Program, string(b), n.Family.String(), n.Table, cmp.Or(n.Chain, "-")})
		}
	}
	s.table(kernels...)
	s.table(kinds...)
	s.table(names...)

	s.print("")
	s.print("KERNEL: the running kernel has nf_tables, or has x_tables loaded.")
	s.print("RULES: of both families, whoever made them.")
	s.print("HINT, CANARY, PROGRAM: a chain of kubelet, or a chain or table that only a program of the host makes.")
	if rep.Evidence.Lacks != "" {
		s.print("nf_tables cannot take iptables' rules: it lacks %s.", rep.Evidence.Lacks)
	}
	for _, b := range detect.Backends() {
		if rep.Errors[b] != "" {
			s.print("%s: %s", b, rep.Errors[b])
		}
	}
}

// rules returns the number of rules, for people.
func rules(f detect.Findings) string {
	if f.Counted == detect.Yes {
		return strconv.Itoa(f.Rules)
	}
	return "at least " + strconv.Itoa(f.Rules)
}
