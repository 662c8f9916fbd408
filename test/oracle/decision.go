// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle says, a second time, what the wrapper has to do: which backend a host uses, and what a container runs
// and keeps. It is written from the documentation, imports nothing of what it judges, and asks nobody. The tests of
// detect, the histories, the containers and the conformance suite compare with it. So a belief stands in two places: in
// the product, and here.
package oracle

// Answer is what is known of something.
type Answer int

// The answers.
const (
	No Answer = iota
	Yes
	Unknown
)

func (a Answer) String() string { return [...]string{No: "no", Yes: "yes", Unknown: "unknown"}[a] }

// The backends. "" is none of them.
const (
	NFT    = "nft"
	Legacy = "legacy"
)

// Other returns the other backend.
func Other(backend string) string {
	if backend == NFT {
		return Legacy
	}
	return NFT
}

// The kinds of markers, the strongest first. They are also the reasons of an answer by a marker.
const (
	Hint = iota
	Canary
	Program
	kinds
)

var kindReasons = [kinds]string{"kubelet-hint", "kubelet-canary", "host-program"}

// The families.
const (
	IPv4 = iota
	IPv6
	families
)

// Backend is what a host has in one backend.
type Backend struct {
	InKernel Answer
	Markers  [kinds][families]Answer // whether there is a marker of a kind in a family
	Rules    int                     // in iptables' tables of both families, as far as they could be counted
	TooMany  bool                    // one of iptables' tables has more than can be counted
}

// Host is what a host has.
type Host struct {
	NFT, Legacy Backend

	TakesRules Answer // whether nf_tables can take iptables' rules
	Loadable   Answer // whether x_tables can be loaded by iptables-legacy
}

// Of returns what a host has in a backend.
func (h *Host) Of(backend string) *Backend {
	if backend == Legacy {
		return &h.Legacy
	}
	return &h.NFT
}

// Decision is an answer.
type Decision struct {
	Backend, Reason string
	Certain         bool
}

// Decide is the decision about a host. held is the backend that the caller holds, "" if none: a guess gives way to it.
func Decide(h *Host, held string) Decision {
	d := decide(h)
	if held != "" && !d.Certain {
		return Decision{Backend: held, Reason: "held"}
	}
	return d
}

// decide is the decision with nothing held.
func decide(h *Host) Decision {
	// The strongest kind of which there is a marker.
	for kind := range kinds {
		backend := whoHas(h, kind)
		if backend != "" {
			return Decision{backend, kindReasons[kind], hasNoneUpTo(kind, h.Of(Other(backend)))}
		}
	}
	// Without a marker, nothing is certain.
	switch {
	case h.NFT.InKernel == No, h.TakesRules == No && (h.Legacy.InKernel == Yes || h.Loadable == Yes):
		return Decision{Backend: Legacy, Reason: "only-supported"}
	case h.Legacy.InKernel == No && h.Loadable == No:
		return Decision{Backend: NFT, Reason: "only-supported"}
	case h.NFT.Rules == 0 && h.Legacy.Rules == 0:
		return Decision{Backend: NFT, Reason: "default"}
	case h.Legacy.Rules > h.NFT.Rules && !h.NFT.TooMany: // a table with too many has more than legacy
		return Decision{Backend: Legacy, Reason: "rule-count"}
	}
	return Decision{Backend: NFT, Reason: "rule-count"}
}

// whoHas returns the backend whose markers of a kind decide: those of IPv4, and those of IPv6 where IPv4 has none. If
// both backends have one there, it is nft.
func whoHas(h *Host, kind int) string {
	for family := range families {
		switch Yes {
		case h.NFT.Markers[kind][family]:
			return NFT
		case h.Legacy.Markers[kind][family]:
			return Legacy
		}
	}
	return ""
}

// hasNoneUpTo reports whether a backend is known to have no marker of a kind or of a stronger one, in either family.
func hasNoneUpTo(kind int, b *Backend) bool {
	for stronger := range kind + 1 {
		for family := range families {
			if b.Markers[stronger][family] != No {
				return false
			}
		}
	}
	return true
}
