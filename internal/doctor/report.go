// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor says what iptables runs in this container, what the host uses, and what is wrong. It diagnoses: it
// changes nothing, and prints no command that changes a rule, a policy or the node's alternatives.
//
// Examine collects the facts; each code is a function of the facts that returns a finding or none.
package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// Version is that of the JSON form of a Report.
const Version = 1

// Report is what doctor found, and what it looked at. Its JSON form is what "doctor -o json" prints.
type Report struct {
	Version      int           `json:"version"`
	Findings     []Finding     `json:"findings"` // problems first
	Host         Host          `json:"host"`
	Here         Here          `json:"here"`
	Network      Network       `json:"network"`
	Capabilities []string      `json:"capabilities"` // those of CAP_NET_ADMIN and CAP_NET_RAW that this process has
	Programs     []Program     `json:"programs"`     // iptables' own, one for each backend
	Names        []layout.Name `json:"names"`        // where the six commands lead
	Messages     []Said        `json:"messages"`     // what iptables printed that the table of messages explains
}

// Finding is one thing that is wrong.
type Finding struct {
	Code     string   `json:"code"` // stable: alerts can rely on it
	Severity Severity `json:"severity"`
	Text     string   `json:"text"` // what is wrong, in one or two sentences
	Look     []string `json:"look"` // commands that show it; none of them changes anything
	Do       string   `json:"do"`   // what to do about it, in words
	More     string   `json:"more"` // the paragraph that explains it
}

// Severity says whether doctor ends with status 1.
type Severity string

const (
	problem Severity = "problem" // iptables fails here, or its rules do not have the effect that they should have
	warning Severity = "warning" // it may fail, or somewhere else
)

// Problem reports whether one of the findings is a problem.
func (r Report) Problem() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == problem })
}

// Lines are for people: each finding with what shows it and what to do, then the facts that matter most.
func (r Report) Lines() (all []string) {
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%-8s %s: %s", strings.ToUpper(string(f.Severity)), f.Code, f.Text))
		for _, command := range f.Look {
			all = append(all, "   look: "+command)
		}
		all = append(all, "   do:   "+f.Do, "   more: "+f.More, "")
	}
	if len(r.Findings) == 0 {
		all = append(all, "no problem found", "")
	}
	return append(all,
		"host:           "+r.Host.String(),
		"iptables here:  "+r.Here.String(),
		"network:        "+r.Network.String(),
	)
}

// Examine looks at everything and changes nothing. It starts iptables' own programs and the iptables of the directory,
// if nobody but root and the caller can change them, to list chains and to print their versions. Without a directory,
// it is the one where PATH finds iptables. limit is how long each program may run.
func Examine(directory string, limit time.Duration) Report {
	s := &start.Starter{Limit: limit}
	place := At(directory)
	place.ask(s)
	f := facts{
		place:     place,
		variable:  variable(),
		process:   thisProcess(),
		keeping:   place.keeping(),
		lockFault: lockFault(),
	}
	f.Version = Version
	f.Host = place.Host(evidence.Query{DryRun: true, Everything: true}) // as a call that adds to table filter
	f.nat = evidence.Query{DryRun: true, NAT: true, Everything: true}.Ask().NFT
	f.Here = place.Here(f.Host)
	f.Network = ThisNetwork(f.Host)
	f.Capabilities = f.process.capabilities()
	f.Names = place.Names
	f.Programs = place.programs(s)
	f.missing = place.missing(f.wanted())
	f.printed = f.run(s)
	f.Messages = explain(f.printed)
	f.other = rulesOf(s, f.wanted().Other(), f.Host, place)
	f.unstarted = s.Refused
	f.Findings = f.diagnose()
	return f.Report
}
