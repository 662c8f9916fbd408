// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package evidence asks the kernel what each backend of iptables has, and decides by one table, Query.Decide, which
// one the host uses.
//
// A question has three answers: yes, no and unknown. Only yes and no are evidence. No process is started, no rule is
// written, no table is registered, and no module of the legacy backend is loaded.
package evidence

import "errors"

// Mode is a backend of iptables.
type Mode string

// The two backends.
const (
	NFT    Mode = "nft"
	Legacy Mode = "legacy"
)

// Modes returns both backends.
func Modes() []Mode { return []Mode{NFT, Legacy} }

// Valid reports whether m is one of the two backends.
func (m Mode) Valid() bool { return m == NFT || m == Legacy }

// Other returns the other backend, or "" if m is none.
func (m Mode) Other() Mode {
	switch m {
	case NFT:
		return Legacy
	case Legacy:
		return NFT
	default:
		return ""
	}
}

// Family is the address family of a table.
type Family uint8

// The families of iptables and ip6tables.
const (
	IPv4 Family = iota
	IPv6
)

var families = [...]Family{IPv4, IPv6}

// String returns "IPv4" or "IPv6".
func (f Family) String() string { return [...]string{"IPv4", "IPv6"}[f] }

// Answer is the kernel's answer to a question.
type Answer int8

// The answers. Unknown also stands for a question that was not asked.
const (
	Unknown Answer = iota
	No
	Yes
)

// String returns "unknown", "no" or "yes".
func (a Answer) String() string { return [...]string{"unknown", "no", "yes"}[a] }

// MarshalText returns the same words.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func answer(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// either is yes if one is yes, and no if both are no.
func either(a, b Answer) Answer {
	if most := max(a, b); most == Yes || a == b {
		return most
	}
	return Unknown
}

// The chains that kubelet creates in table mangle of the backend it uses. It creates the hint when it starts, since
// Kubernetes 1.24 (KEP-3178). It has created the canary since 1.17, and looks after it every minute.
const (
	HintChain   = "KUBE-IPTABLES-HINT"
	CanaryChain = "KUBE-KUBELET-CANARY"
)

const mangle = "mangle"

// tableNames are the tables whose rules count, those that most likely have some first.
var tableNames = [...]string{"filter", "nat", mangle, "raw", "security"}

// Chain is a chain of a table.
type Chain struct {
	Table string `json:"table"`
	Name  string `json:"chain"`
}

// Program is a program of the host, by what it has made: a chain of one of iptables' tables, or, without a Chain, a
// table of nftables' own ("inet firewalld").
type Program struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Chain string `json:"chain,omitempty"`
}

// About is what is known of one backend and family.
type About struct {
	// Works says whether the running kernel supports the backend. For nft, it is No if a dry run was refused, unless
	// only one backend is installed: whatever the kernel lacks, there is no other program. For legacy, it is Unknown
	// if x_tables is not loaded: asking would load it. Where nf_tables lacks something, a dry run looks for the module.
	Works Answer `json:"works"`
	Lacks string `json:"-"` // what the kernel lacks by a dry run, a clause for people

	Hint   Answer `json:"hint"`
	Canary Answer `json:"canary"`

	// HostChain and HostTable say whether there is a chain of iptables, or a table of nftables, whose name identifies a
	// program of the host. Programs has the first one that was found, with Query.Everything all.
	HostChain Answer    `json:"-"`
	HostTable Answer    `json:"-"`
	Programs  []Program `json:"programs,omitempty"`

	// Rules says whether the five tables have any rule that iptables-save would print. Count is roughly how many were
	// read. Reading stops when more rules cannot change the answer.
	Rules Answer `json:"rules"`
	Count int    `json:"count"`

	Tables []string `json:"tables,omitempty"` // which of the five tables exist
	Native []string `json:"native,omitempty"` // nft's tables that iptables does not use: "inet firewalld"

	// Foreign has, for each of nft's five tables, one chain that is not iptables' own or has a rule that is not.
	Foreign []Chain `json:"foreign,omitempty"`

	Err error `json:"-"` // why something is unknown: the first momentary error, otherwise the first
}

// fail notes an error.
func (a *About) fail(err error) {
	if err == nil || a.Err != nil && (momentary(a.Err) || !momentary(err)) {
		return
	}
	a.Err = err
}

// Backend is what is known of one backend, by Family.
type Backend [2]About

// Query says what is known beforehand, and how much to ask. A Mode that is neither NFT nor Legacy counts as none.
type Query struct {
	Override   Mode     // the answer, whatever the evidence
	Remembered Decision // what this container remembers; the zero Decision: nothing
	Installed  Mode     // the only backend whose programs are installed; "": both, neither, or not known

	// DryRun permits a dry run of nf_tables where nothing else decides: a batch that the kernel checks and never
	// commits. It takes milliseconds, may load modules of nf_tables, and delays other writers for that time. NAT
	// includes a nat chain.
	DryRun, NAT bool

	// Everything also asks what cannot change the answer.
	Everything bool
}

// Result is a decision, and the evidence that it rests on.
type Result struct {
	Decision
	NFT    Backend `json:"-"`
	Legacy Backend `json:"-"`
}

// Of returns what is known of a backend.
func (r Result) Of(m Mode) Backend {
	if m == Legacy {
		return r.Legacy
	}
	return r.NFT
}

func (r Result) errs() []error {
	return []error{r.NFT[IPv4].Err, r.NFT[IPv6].Err, r.Legacy[IPv4].Err, r.Legacy[IPv6].Err}
}

// Err says what could not be asked, nil if nothing. errors.Is finds the kernel's errno in it.
func (r Result) Err() error { return errors.Join(r.errs()...) }

// Momentary reports whether a question failed for a reason that may be gone by the next call, such as a lack of
// descriptors.
func (r Result) Momentary() bool {
	for _, err := range r.errs() {
		if momentary(err) {
			return true
		}
	}
	return false
}
