// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// answer is what detect prints. Its JSON form is docs/detect.schema.json.
type answer struct {
	Version int `json:"version"`
	doctor.Host
	Remembered *evidence.Decision `json:"remembered,omitempty"` // if that is the reason: the earlier answer
	Here       doctor.Here        `json:"here"`
	Network    doctor.Network     `json:"network"`
}

// schemaVersion is the version of the JSON. Within a version, fields are added; none changes or is removed.
const schemaVersion = 1

func newAnswer(place doctor.Place, h doctor.Host) answer {
	a := answer{Version: schemaVersion, Host: h, Here: place.Here(h), Network: doctor.ThisNetwork(h)}
	if h.Reason == evidence.Remembered {
		d := place.Memory.Read()
		a.Remembered = &d
	}
	return a
}

// differs reports whether iptables here is not the backend that the host is known to use.
func (a answer) differs() bool {
	host := a.Host.Now()
	return host.Conclusive && a.Here.Backend == host.Mode.Other()
}

// printTable prints all evidence, for people.
func (s *session) printTable(a answer) {
	s.answer("host:           %s", a.Host)
	s.answer("iptables here:  %s", a.Here)
	s.answer("network:        %s", a.Network)

	backends := [][]string{{"BACKEND", "FAMILY", "WORKS", "HINT", "CANARY", "RULES"}}
	programs := [][]string{{"HOST PROGRAM", "BACKEND", "FAMILY", "TABLE", "CHAIN"}}
	for _, e := range a.Evidence {
		backend := string(e.Backend)
		backends = append(backends, []string{
			backend, e.Family, e.Works.String(), e.Hint.String(), e.Canary.String(), rules(e),
		})
		for _, p := range e.Programs {
			programs = append(programs, []string{p.Name, backend, e.Family, p.Table, cmp.Or(p.Chain, "-")})
		}
	}
	s.table(backends...)
	s.table(programs...)

	s.answer("")
	s.answer("WORKS: the running kernel can do it.")
	s.answer("RULES: in the five tables, roughly; reading ends when more cannot change the answer.")
	s.answer("HINT, CANARY: kubelet's chains %s and %s are in table mangle.", evidence.HintChain, evidence.CanaryChain)
	for _, e := range a.Evidence {
		s.printRemarks(e)
	}
}

// rules says about how many there are, or whether there are any.
func rules(e doctor.Evidence) string {
	if e.Count > 0 {
		return strconv.Itoa(e.Count)
	}
	return e.Rules.String()
}

// printRemarks prints what is unusual about a backend and family.
func (s *session) printRemarks(e doctor.Evidence) {
	who := fmt.Sprintf("%s %s", e.Backend, e.Family)
	if len(e.Native) > 0 {
		s.answer("%s: tables that iptables does not use: %s", who, doctor.List(e.Native))
	}
	for _, c := range e.Foreign {
		s.answer("%s: chain %q of table %q is not iptables' own, or has a rule that is not", who, c.Name, c.Table)
	}
	if e.Error != "" {
		s.answer("%s: %s", who, e.Error)
	}
}
