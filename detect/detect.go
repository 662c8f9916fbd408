// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package detect finds out which backend of iptables, nft or legacy, the host uses. It is for programs that run in a
// container and change the host's packet filter: a CNI plugin, a node agent, a sidecar's init process. Each backend
// lists and changes only its own rules, so these programs must use the host's.
//
//	r, _ := detect.Host("")
//	program, err := exec.Find(r.Backend, "iptables")
//
// # When to ask again
//
// A certain answer holds until the host changes its backend: keep it. Any other is a guess, the best choice at this
// moment. A program that has made rules by a guess passes that backend to Host from then on. It then gets another
// backend only if a marker proves it.
//
// # What is asked
//
// The kernel is asked: nf_tables over netlink, x_tables over getsockopt(2) and /proc; and modules.dep in /lib/modules,
// if x_tables is not loaded. No process is started, no rule is written, no table is made, and no module of the legacy
// backend is loaded. The kernel may load nf_tables.
//
// A dry run shows whether nf_tables can take iptables' rules. It is made only if no marker decides, nft would be the
// answer, iptables' tables in nf_tables have no rule yet, and legacy can run. It is a transaction that the kernel
// checks and never commits. It takes 10 to 20 ms, and may load nft_chain_nat, nf_nat, nf_conntrack, nft_compat and
// xt_comment.
//
// Without CAP_NET_ADMIN or /proc, the answer is a guess. Once x_tables is loaded, reading its tables also takes user 0,
// group 0 or CAP_DAC_READ_SEARCH.
//
// The answer is for the network namespace of the calling thread. A program that enters another one with setns(2) must
// lock its goroutine to its thread (runtime.LockOSThread) until it has the answer. It should do both in a goroutine of
// its own that ends without unlocking the thread.
//
// On systems other than Linux, the answer is a guess.
//
// # What may change
//
// The values of Backend are complete. Reasons may be added. Structs may get more fields: name the fields in literals.
// Texts for people may change.
package detect

// Backend is one of the two implementations of iptables.
type Backend string

const (
	NFT    Backend = "nft"    // iptables-nft, on nf_tables
	Legacy Backend = "legacy" // iptables-legacy, on x_tables
)

// Backends returns both, nft first.
func Backends() []Backend { return []Backend{NFT, Legacy} }

// Valid reports whether b is one of the two backends.
func (b Backend) Valid() bool { return b == NFT || b == Legacy }

// Other returns the other backend, "" if b is neither.
func (b Backend) Other() Backend {
	switch b {
	case NFT:
		return Legacy
	case Legacy:
		return NFT
	default:
		return ""
	}
}

// Reason is the row of the decision table that applied.
type Reason string

// The reasons. The first three are markers, and only they can be certain.
const (
	KubeletHint   Reason = "kubelet-hint"   // chain KUBE-IPTABLES-HINT in mangle, since Kubernetes 1.24 (KEP-3178)
	KubeletCanary Reason = "kubelet-canary" // chain KUBE-KUBELET-CANARY in mangle, since Kubernetes 1.17
	HostProgram   Reason = "host-program"   // a chain or table of another program of the host
	Held          Reason = "held"           // no row is certain, and the caller already uses this backend
	OnlySupported Reason = "only-supported" // the other backend is missing, or nf_tables cannot take iptables' rules
	RuleCount     Reason = "rule-count"     // more rules than the other backend; a tie goes to nft
	Default       Reason = "default"        // nothing was found
)

// Family is the address family of a table.
type Family uint8

const (
	IPv4 Family = iota
	IPv6
)

var families = [...]Family{IPv4, IPv6}

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// MarshalText returns "IPv4" or "IPv6", as String does.
func (f Family) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Answer is the answer to one question, such as whether a chain exists. It is a number because Evidence is copied
// often: as strings, answers cost a call 5 page faults.
type Answer int8

// The answers. Only Yes and No are evidence. Of several answers about one thing, the largest is the answer for all: any
// Yes outweighs an Unknown, and any Unknown a No.
const (
	NotAsked Answer = iota
	No
	Unknown // the question failed, or a table is too large to be read
	Yes
)

// String returns "not asked", "unknown", "no" or "yes".
func (a Answer) String() string {
	switch a {
	case NotAsked:
		return "not asked"
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// MarshalText returns "not asked", "unknown", "no" or "yes", as String does.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Marker is a chain in one of iptables' tables, or a native table, that kubelet or another program of the host makes.
type Marker struct {
	Program string `json:"program"` // the program that makes it: "kubelet", "Docker"
	Family  Family `json:"family"`
	Table   string `json:"table"`           // "mangle"; a native table as nft prints it: "ip kube-proxy"
	Chain   string `json:"chain,omitempty"` // "" for a native table
}

// Findings are what was found in one backend. Arrays are by Family.
type Findings struct {
	Kernel  Answer    `json:"kernel"`            // the kernel has nf_tables, or x_tables is loaded for either family
	Hint    [2]Answer `json:"hint,omitzero"`     // kubelet's chain KUBE-IPTABLES-HINT
	Canary  [2]Answer `json:"canary,omitzero"`   // kubelet's chain KUBE-KUBELET-CANARY
	Program [2]Answer `json:"program,omitzero"`  // any marker of another program of the host
	Markers []Marker  `json:"markers,omitempty"` // the markers that were found, in the order of the questions

	// Rules is the number of rules of both families in iptables' tables, whoever made them. Native tables do not count.
	// If Counted is No, there are more. If it is Unknown, the number is not exact: a question failed, the rules changed
	// meanwhile, or a table of legacy was too large to be read, and all its entries are counted.
	Rules   int    `json:"rules"`
	Counted Answer `json:"counted,omitzero"`

	// Err is the error of the first question that failed. errors.Is finds the kernel's errno in it: unix.EPERM if
	// CAP_NET_ADMIN is missing, or is not in the network's user namespace. A table that is too large is no error.
	Err error `json:"-"`
}

// Evidence is all that was found.
type Evidence struct {
	NFT    Findings `json:"nft"`
	Legacy Findings `json:"legacy"`

	// TakesRules is Yes if nf_tables can take iptables' rules: a dry run was accepted, or a table of iptables has a
	// rule, whoever made it. If it is No, Lacks describes what is missing, for people.
	TakesRules Answer `json:"takes_rules,omitzero"`
	Lacks      string `json:"lacks,omitempty"`

	// Loadable is Yes if iptables-legacy could load x_tables: modules.dep of the running kernel, as this process sees
	// /lib/modules, lists ip_tables. It is asked if x_tables is not loaded: by Host only if no marker decides and
	// nothing is held, by Survey always.
	Loadable Answer `json:"loadable,omitzero"`
}

// Of returns what was found in one backend.
func (e Evidence) Of(b Backend) Findings {
	if b == Legacy {
		return e.Legacy
	}
	return e.NFT
}

// Result is a backend, the reason for it, and the evidence.
type Result struct {
	Backend Backend `json:"backend"`
	Reason  Reason  `json:"reason"`

	// Certain is true if a marker decides, and the other backend is known to have no marker of the same or a stronger
	// kind.
	Certain bool `json:"certain"`

	Evidence Evidence `json:"evidence"`
}
