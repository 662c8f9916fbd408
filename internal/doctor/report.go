// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor says what iptables runs in this container, what the host uses, and what is wrong. It diagnoses: it
// changes nothing, and prints no command that changes a rule, a policy or the node's alternatives.
//
// Examine collects the facts; each code is a function of the facts that returns a finding or none.
package doctor

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Version is that of the JSON form of a Report.
const Version = 1

// Report is what doctor found, and what it looked at. Its JSON form is what "doctor -o json" prints.
type Report struct {
	Version      int       `json:"version"`
	Findings     []Finding `json:"findings"` // problems first
	Host         Host      `json:"host"`
	Here         Here      `json:"here"`
	Network      Network   `json:"network"`
	Capabilities []string  `json:"capabilities"` // those of CAP_NET_ADMIN and CAP_NET_RAW that this process has
	Programs     []Program `json:"programs"`     // iptables' own, one for each backend
	Names        []Name    `json:"names"`        // where the six commands lead
	Messages     []Said    `json:"messages"`     // what iptables printed that the table of messages explains
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

// Input is what to examine.
type Input struct {
	Dir string // the directory of the six commands; "": where PATH finds iptables
}

// Examine looks at everything and changes nothing. It starts iptables' own programs and the iptables of the directory,
// if nobody but root and the caller can change them, to list chains and to print their versions.
func Examine(in Input) Report {
	place := At(in.Dir)
	f := facts{
		variable: variable(),
		process:  thisProcess(),
	}
	f.Version = Version
	f.Host = place.Host(evidence.Query{DryRun: true, NAT: true, Everything: true})
	f.Here = place.Here(f.Host)
	f.Network = ThisNetwork(f.Host)
	f.Capabilities = f.process.capabilities()
	f.keeping = place.keeping()
	f.place = place
	f.brought = place.olderThanContainer()
	f.wrapperIn = place.wrapperElsewhere()
	s := &starter{}
	f.Names = place.names(s)
	f.believeNames()
	f.Programs = place.programs(s)
	f.missing = place.missing(f.wanted())
	f.printed = run(s, f.Names, f.wanted(), f.Host)
	f.Messages = explain(f.printed)
	f.other = rulesOf(s, f.wanted().Other(), f.Host, place)
	if f.wanted() == evidence.NFT {
		f.nftFaults = nftFaults()
	}
	f.lockFault = lockFault()
	f.unstarted = s.refused
	f.Findings = f.diagnose()
	return f.Report
}

// believeNames takes over what the iptables of a client said about itself, where it is neither the wrapper nor a
// program of iptables.
func (f *facts) believeNames() {
	if len(f.Names) == 0 || !f.Names[0].other {
		return
	}
	n := f.Names[0]
	f.Here.Backend = n.Backend
	if !n.Wrapper {
		return
	}
	f.Here.How = byEachCall
	f.Here.Backend = f.Host.Backend
	if f.variable != "" {
		f.Here.How = byVariable
		f.Here.Backend = evidence.Mode(f.variable)
	}
}
