// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package detect finds out which backend of iptables, nft or legacy, the host uses. It is for programs that run in a
// container and change the host's packet filter: a CNI plugin, a node agent, a sidecar's init process. Rules that one
// backend creates are invisible to the other, so they must use the host's.
//
// A conclusive answer holds until the host changes its backend, so it can be remembered. A guess is the best choice
// right now and nothing more: use it if there is something to do, but ask again next time. Once rules were created by a
// guess, stay with that backend, and pass it as Query.Remembered when asking again, unless Result.Memorable says why
// not. A program that can wait calls Query.Wait instead.
//
// The kernel is asked, and nothing else: nf_tables over netlink, x_tables over getsockopt. No process is started, no
// rule is written, no table is registered, and no module of the legacy backend is loaded. The kernel may load nf_tables
// when it is asked about it. Every question has three possible answers: yes, no and unknown. Only yes and no count as
// evidence, and a result is conclusive only if everything that could have changed it was read.
//
// CAP_NET_ADMIN in the network namespace is needed for a conclusive answer, and the calling thread's namespace is the
// one that is asked about: a caller that entered it with setns(2) must hold on to its thread (runtime.LockOSThread). On
// systems other than Linux everything is unknown, with errors that are errors.ErrUnsupported.
//
// The values of Mode and Answer are stable and complete. Those of Family, Reason, Conflict, FaultKind, WaitFor and
// Feature.Name are stable, but others may be added. Structs may get more fields: name the fields in literals. The JSON
// form of a Result (docs/detect.v3.schema.json) is stable, and so is the errno that errors.Is finds in Evidence.Err.
// Texts for people may change.
package detect

import "time"

// Mode is a backend of iptables.
type Mode string

// The two backends.
const (
	NFT    Mode = "nft"
	Legacy Mode = "legacy"
)

func (m Mode) exists() bool { return m == NFT || m == Legacy }

// Family is the address family of a table.
type Family string

// The families that iptables and ip6tables serve.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// The chains that kubelet creates in table mangle of the backend it uses. The hint is created when kubelet starts,
// since Kubernetes 1.24, as a promise to others (KEP-3178). The canary has been created since 1.17, and again every
// minute.
const (
	HintChain   = "KUBE-IPTABLES-HINT"
	CanaryChain = "KUBE-KUBELET-CANARY"
)

// mangle is where kubelet creates its chains, because few others use that table.
const mangle = "mangle"

// tableNames are the tables whose rules count, those that most likely have some first.
var tableNames = [...]string{"filter", "nat", mangle, "raw", "security"}

// Answer is the kernel's answer to a question. Its text forms are "not-asked", "unknown", "no" and "yes"; the numbers
// are not meant to be stored.
type Answer int8

// NotAsked and Unknown are not evidence.
const (
	NotAsked Answer = iota // it could not change the result
	Unknown                // asking was not permitted, or failed
	No
	Yes
)

func answer(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// Table is one of the tables raw, mangle, nat, filter and security that exists in the namespace.
type Table struct {
	Name   string   `json:"name"`
	Rules  Count    `json:"rules"`
	Chains []string `json:"-"` // the user-defined ones, as far as they could be read
}

// Chain is a chain of a table.
type Chain struct {
	Table string `json:"table"`
	Name  string `json:"name"`
}

// Feature is something that iptables-nft needs from nf_tables, and whether a dry run has shown that the kernel can do
// it.
type Feature struct {
	Name  string `json:"name"`
	Has   Answer `json:"has"`
	Err   error  `json:"-"`               // the kernel's refusal: an errno for errors.Is
	Error string `json:"error,omitempty"` // the same in words, which is all that JSON has of it
}

// The features, by Feature.Name.
const (
	FeatureTable  = "table"        // a table of the family
	FeatureFilter = "filter-chain" // a base chain of type filter
	FeatureNAT    = "nat-chain"    // a base chain of type nat
	FeatureRule   = "rule"         // a rule with a counter and a jump, in a chain
	FeatureMatch  = "xt-match"     // a rule with a match of x_tables, as most rules of iptables-nft have it
)

// Evidence is what is known of one backend and family.
type Evidence struct {
	Backend Mode   `json:"backend"`
	Family  Family `json:"family"`

	// Supported says whether the running kernel has this backend. For legacy, it is also Unknown where x_tables is
	// not loaded but a module may provide it: finding out would load it.
	Supported Answer `json:"supported"`

	Hint   Answer `json:"hint"`   // HintChain is in table mangle
	Canary Answer `json:"canary"` // CanaryChain is in table mangle

	// HostChain says whether there is a chain that a program of the host makes with iptables, such as DOCKER-USER.
	// HostTable says it of a table that one makes with nftables, such as "inet firewalld"; it is never Yes for legacy.
	// Programs are those that were found: with Query.Everything all of them, otherwise the first.
	HostChain Answer    `json:"host_chain"`
	HostTable Answer    `json:"host_table"`
	Programs  []Program `json:"programs,omitempty"`

	// Rules counts what iptables-save would print as -A lines, in the five tables together. A rule that was made with
	// nft, in a chain that is like iptables' own, and that only uses what iptables-nft uses as well, such as a plain
	// accept, is printed and counts. Where counting ended early, what was not read is not known.
	Rules Count `json:"rules"`

	// Estimate is the likely number of rules where Rules is only a lower bound, for example because rules kept changing
	// while they were counted; otherwise 0. A guess goes by it.
	Estimate int `json:"estimate,omitempty"`

	// Foreign are chains in nft's tables that are not iptables' own, or that have a rule that is not: somebody uses nft
	// directly, in a table that has one of iptables' names. Of its n rules, iptables-nft prints some or none, so they
	// count as 0 to n. Of the chains with such rules, one is named for each table.
	Foreign []Chain `json:"foreign,omitempty"`

	// Faults are what makes iptables-nft fail in nft's tables, or have no effect there. They say nothing of the backend
	// that the host uses: iptables-nft lists the rules of such a table, so they count. They are looked for only with
	// Query.Everything.
	Faults []Fault `json:"faults,omitempty"`

	// Native are nft's tables that iptables does not use, as nft names them: "ip docker-bridges", "inet firewalld".
	// They are looked for only with Query.Everything.
	Native []string `json:"native,omitempty"`

	// Features are the results of a dry run, if there was one (Query.DryRun).
	Features []Feature `json:"features,omitempty"`

	// Tables are those that exist, if all of them were looked at (Query.Everything).
	Tables []Table `json:"tables,omitempty"`

	// Err is why a question failed: the first error of the moment, such as unix.ENFILE, otherwise the first one.
	// errors.Is finds the kernel's errno in it. Error is the same in words, which is all that JSON has of it.
	Err   error  `json:"-"`
	Error string `json:"error,omitempty"`

	exists Answer // one of the five tables exists; asked only where a guess is remembered
}

// Query says what is known beforehand and how much to ask. The zero Query knows nothing and asks only what can change
// the answer. A Mode in it that is neither NFT nor Legacy counts as none.
type Query struct {
	// Override, if set, is the answer whatever the evidence, and there is nothing to wait for.
	Override Mode

	// Remembered is what this container remembers, if anything. kubelet's chains outrank it. A guess holds only while
	// its backend has one of the five tables, or may have: a guess that left no table has written nothing.
	Remembered Memory

	// Home is what this container remembers of the network namespace of its first process, if the calling thread is in
	// another one. It proves nothing here, but an agent that enters pods' namespaces should run one backend in all that
	// show no evidence of their own. Only what is conclusive, or was chosen by somebody (Override), counts.
	Home Memory

	// Installed is the only backend whose programs are installed. Empty: both are, or neither, or it is not known.
	Installed Mode

	// DryRun permits a dry run of nf_tables where nothing else decides and both backends can be run: a transaction
	// that the kernel checks and never commits. It shows whether iptables-nft could add rules, makes the kernel load
	// modules that it would load, takes milliseconds, and delays other writers for that time. So set it only if
	// there is something to add.
	DryRun bool

	// NAT includes a nat chain in the dry run. The kernel may then load nf_nat and nf_conntrack.
	NAT bool

	// Everything also asks what cannot change the answer, and lists the tables with exact counts. That takes time in
	// proportion to the number of rules. What is beyond a million rules or so is not read, and stays unknown.
	Everything bool

	// WaitFor says what ends Query.Wait.
	WaitFor WaitFor

	_ [0]func() // fields may be added that cannot be compared
}

// WaitFor is what Query.Wait waits for.
type WaitFor string

// A program that knows of a kubelet on this host waits for its chains. While kubelet starts, or while the host's rules
// are loaded again, leftovers in the other backend can be all that there is, and a count of them is conclusive.
const (
	ForAny     WaitFor = ""        // any conclusive answer
	ForKubelet WaitFor = "kubelet" // a conclusive answer by kubelet's chains
)

func (w WaitFor) exists() bool { return w == ForAny || w == ForKubelet }

// EndedBy reports whether a result is what was waited for. If it is remembered, it counts as what it was then: what
// kubelet's chains said earlier ends the wait for them. A WaitFor that is none of the values is ended by nothing.
func (w WaitFor) EndedBy(r Result) bool {
	switch w {
	case ForAny:
		return r.Conclusive
	case ForKubelet:
		return r.Conclusive && (r.Reason.Kubelet() || r.Remembered != nil && r.Remembered.Reason.Kubelet())
	default:
		return false
	}
}

// Host returns the backend that is used in the network namespace of the calling thread, without a dry run. It reads
// nothing of what the wrapper stores in a container. So iptables there may run the other backend: after a guess, after
// "iptables-wrapper select", where the host has changed since, and with IPTABLES_WRAPPER_MODE. Where the host shows
// nothing, the wrapper also goes by which programs are installed and, in a call that adds something, by a dry run.
// Otherwise both are the same.
func Host() Result { return Query{}.Run() }

// PollInterval is how often Query.Wait asks.
const PollInterval = 200 * time.Millisecond
