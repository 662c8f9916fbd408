// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package detect finds out which backend of iptables, nft or legacy, the host uses. It is for programs that run in a
// container and change the host's packet filter: a CNI plugin, a node agent, a sidecar's init process. Each backend
// lists and changes only its own rules, so they must use the host's.
//
//	r := detect.Host()
//	path, err := exec.Find(r.Mode, "iptables")
//
// # When to ask again
//
// A conclusive answer holds until the host changes its backend: keep it. Any other is a guess, the best choice at this
// moment. A program that acts on a guess should stay with that backend for as long as its rules are there, unless a
// later answer is conclusive by kubelet's chains (Reason.Kubelet). While a node boots, leftovers in the other backend
// may be all that there is, so a program that knows of a kubelet on this host calls WaitKubelet first.
//
// # What is needed
//
// The kernel is asked, and nothing else: nf_tables over netlink, x_tables over getsockopt. No process is started, no
// rule is written, no table is registered, and no module of the legacy backend is loaded. The kernel may load nf_tables
// when it is asked about it. A conclusive answer needs CAP_NET_ADMIN and /proc.
//
// The network namespace of the calling thread is asked about. A program that enters another one with setns(2) must hold
// on to its thread (runtime.LockOSThread) until it has the answer, and should do both in a goroutine of its own that
// ends without unlocking it.
//
// On systems other than Linux nothing is known, and Result.Err is errors.ErrUnsupported.
//
// # What may change
//
// The values of Mode are complete. Reasons may be added. Structs may get more fields: name the fields in literals.
// Texts for people may change.
package detect

import (
	"context"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Mode is a backend of iptables.
type Mode = evidence.Mode

// The two backends.
const (
	NFT    = evidence.NFT
	Legacy = evidence.Legacy
)

// Reason is the row of the decision table that applied. Its method Kubelet reports that kubelet's chains decided.
type Reason = evidence.Reason

// The reasons, in the order of the table. Those from OnlySupported on are never conclusive.
const (
	KubeletHint   = evidence.KubeletHint   // chain KUBE-IPTABLES-HINT, since Kubernetes 1.24 (KEP-3178)
	KubeletCanary = evidence.KubeletCanary // chain KUBE-KUBELET-CANARY, since Kubernetes 1.17
	HostProgram   = evidence.HostProgram   // a program of the host, such as Docker or firewalld, keeps its rules there
	RuleCount     = evidence.RuleCount     // it alone has rules, or more than the other; both having some is a guess
	OnlySupported = evidence.OnlySupported // the kernel can do only this one
	NeitherWorks  = evidence.NeitherWorks  // the kernel can do neither: RHEL 10 without kernel-modules-extra
	OnlyInstalled = evidence.OnlyInstalled // Query.Installed
	Default       = evidence.Default       // nothing was found
)

// Result is an answer. The zero Result is none.
type Result struct {
	Mode       Mode
	Reason     Reason
	Conclusive bool // nothing that could not be read could change Mode; otherwise it is a guess

	// Err says what could not be asked, nil if nothing. errors.Is finds the kernel's errno in it, unix.EPERM where
	// CAP_NET_ADMIN is missing. An answer can be conclusive all the same.
	Err error

	because string
}

// String returns the answer and why, in a sentence for people: "nft: chain KUBE-IPTABLES-HINT is in nft's mangle table
// (IPv4, IPv6)".
func (r Result) String() string { return string(r.Mode) + ": " + r.because }

// Query says what is known beforehand. The zero Query knows nothing.
type Query struct {
	// Installed is the only backend whose programs are installed. Empty: both are, or neither, or it is not known.
	Installed Mode

	// DryRun permits a dry run of nf_tables where nothing else decides: a transaction that the kernel checks and never
	// commits. It shows whether iptables-nft could add rules, makes the kernel load modules that it would load, takes
	// milliseconds, and delays other writers for that time. So set it only if there is something to add. NAT includes
	// a nat chain; the kernel may then load nf_nat and nf_conntrack.
	DryRun, NAT bool

	_ [0]func() // fields may be added that cannot be compared
}

// Run answers the query. It never fails: what cannot be asked is unknown, see Result.Err.
func (q Query) Run() Result {
	asked := evidence.Query{Installed: q.Installed, DryRun: q.DryRun, NAT: q.NAT}
	return resultOf(asked.Ask())
}

// Host returns the backend that is used in the network namespace of the calling thread. It knows nothing of what
// iptables-wrapper stores in a container: iptables there may run the other backend after a guess, after
// "iptables-wrapper select", where the host has changed since, and with IPTABLES_WRAPPER_MODE.
func Host() Result { return Query{}.Run() }

// WaitKubelet asks five times a second until there is a conclusive answer by kubelet's chains, and returns it. If ctx
// is done before, it returns the last answer, of whatever kind, and the error of ctx. It asks at least once. A caller
// whose thread has entered another network namespace must be locked to it.
func WaitKubelet(ctx context.Context) (Result, error) {
	r, err := evidence.Wait(ctx, evidence.Query{}.Ask, byKubelet)
	return resultOf(r), err
}

func byKubelet(r evidence.Result) bool { return r.Conclusive && r.Reason.Kubelet() }

func resultOf(r evidence.Result) Result {
	return Result{Mode: r.Mode, Reason: r.Reason, Conclusive: r.Conclusive, Err: r.Err(), because: r.Because}
}
