// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import "slices"

// Reason is the row of the table that applied.
type Reason string

// The reasons, in the order of the table. Selected is what "select --mode" stores; the table answers Remembered then.
const (
	Override      Reason = "override"
	KubeletHint   Reason = "kubelet-hint"
	KubeletCanary Reason = "kubelet-canary"
	Remembered    Reason = "remembered"
	HostProgram   Reason = "host-program"
	RuleCount     Reason = "rule-count"
	OnlySupported Reason = "only-supported"
	NeitherWorks  Reason = "neither-works"
	OnlyInstalled Reason = "only-installed"
	Default       Reason = "default"

	Selected Reason = "selected"
)

// Reasons returns the reasons of the table in its order.
func Reasons() []Reason {
	return []Reason{
		Override, KubeletHint, KubeletCanary, Remembered, HostProgram, RuleCount, OnlySupported, NeitherWorks,
		OnlyInstalled, Default,
	}
}

// Kubelet reports whether kubelet's chains decided.
func (r Reason) Kubelet() bool { return r == KubeletHint || r == KubeletCanary }

// Decision is an answer: a backend, and why. The zero Decision is none.
type Decision struct {
	Mode   Mode   `json:"backend"`
	Reason Reason `json:"reason"`
	// nothing that could not be read could change Mode, or "select --mode" said so
	Conclusive bool   `json:"conclusive"`
	Because    string `json:"because"` // one clause for people, printable, less than 200 bytes
}

// Decide returns the first row of this table that applies.
//
// The first kind of evidence decides. The answer is certain if the other backend is known to have nothing of this kind,
// or of a kind above it. Unknown counts as none for choosing the row. Of kubelet's kinds, nft wins if both backends
// have one: what legacy has is left over from before the host changed its backend.
func (q Query) Decide(nft, legacy Backend) Decision {
	d := q.row(nft, legacy)
	d.Because = q.because(d, nft, legacy)
	return d
}

// row is Decide without the words.
func (q Query) row(nft, legacy Backend) Decision {
	n, l := together(nft), together(legacy)
	other := func(m Mode) side {
		if m == NFT {
			return l
		}
		return n
	}
	hinted, hintIsCertain := byChain(nft, legacy, hasHint)
	watched, canaryIsCertain := byChain(nft, legacy, hasCanary)
	canaryIsCertain = canaryIsCertain && other(watched).hasNothing(hintKind)
	remembered := q.Remembered.Mode
	proven := q.Remembered.Conclusive && q.Remembered.Reason != Selected

	more := NFT
	if l.count > n.count {
		more = Legacy
	}
	bothHaveRules := n.has[rulesKind] == Yes && l.has[rulesKind] == Yes

	// A host may speak IPv4 only. So that nft lacks IPv6 counts only if legacy is known to have it.
	onlyLegacyHasIPv6 := nft[IPv6].Works == No && legacy[IPv6].Works == Yes

	table := [...]struct {
		reason  Reason
		mode    Mode
		applies bool
		certain bool
	}{
		{reason: Override, mode: q.Override, applies: q.Override.Valid()},

		{reason: KubeletHint, mode: hinted, applies: hintIsCertain, certain: true},
		{reason: KubeletCanary, mode: watched, applies: canaryIsCertain, certain: true},
		{
			reason: Remembered, mode: remembered, applies: remembered.Valid(),
			certain: proven && other(remembered).hasNothing(canaryKind),
		},
		{reason: KubeletHint, mode: hinted, applies: hinted.Valid()},
		{reason: KubeletCanary, mode: watched, applies: watched.Valid()},

		{
			reason: HostProgram, mode: NFT, applies: n.hostChain == Yes && l.hostChain != Yes,
			certain: l.hasNothing(hostKind),
		},
		{
			reason: HostProgram, mode: Legacy, applies: l.hostChain == Yes && n.has[hostKind] != Yes,
			certain: n.hasNothing(hostKind),
		},
		{ // nothing but nftables' own tables, which do not tell what the host does with iptables
			reason: HostProgram, mode: NFT, applies: n.hostTable == Yes && l.hostChain != Yes,
			certain: l.hasNothing(rulesKind),
		},

		{
			reason: RuleCount, mode: NFT, applies: n.has[rulesKind] == Yes && l.has[rulesKind] != Yes,
			certain: l.hasNothing(rulesKind),
		},
		{
			reason: RuleCount, mode: Legacy, applies: l.has[rulesKind] == Yes && n.has[rulesKind] != Yes,
			certain: n.hasNothing(rulesKind),
		},
		{reason: RuleCount, mode: more, applies: bothHaveRules},

		{reason: OnlySupported, mode: NFT, applies: onlyOther(legacy, nft)},
		{reason: OnlySupported, mode: Legacy, applies: onlyOther(nft, legacy) || onlyLegacyHasIPv6},
		{reason: NeitherWorks, mode: NFT, applies: nft[IPv4].Works == No && legacy[IPv4].Works == No},
		{reason: OnlyInstalled, mode: q.Installed, applies: q.Installed.Valid()},
		{reason: Default, mode: NFT, applies: true},
	}
	for _, row := range table {
		if row.applies {
			return Decision{Mode: row.mode, Reason: row.reason, Conclusive: row.certain}
		}
	}
	panic("evidence: the last row always applies")
}

// The kinds of evidence, highest first.
const (
	hintKind = iota
	canaryKind
	hostKind
	rulesKind
	kinds
)

func hasHint(a About) Answer { return a.Hint }

func hasCanary(a About) Answer { return a.Canary }

// side is what is known of one backend, both families together.
type side struct {
	has                  [kinds]Answer
	hostChain, hostTable Answer
	count                int
}

func together(b Backend) side {
	v4, v6 := b[IPv4], b[IPv6]
	s := side{
		hostChain: either(v4.HostChain, v6.HostChain),
		hostTable: either(v4.HostTable, v6.HostTable),
		count:     v4.Count + v6.Count,
	}
	s.has = [kinds]Answer{
		hintKind:   either(v4.Hint, v6.Hint),
		canaryKind: either(v4.Canary, v6.Canary),
		hostKind:   either(s.hostChain, s.hostTable),
		rulesKind:  either(v4.Rules, v6.Rules),
	}
	return s
}

// hasNothing reports whether the backend is known to have nothing of a kind, or of a kind above it.
func (s side) hasNothing(lowest int) bool {
	return !slices.ContainsFunc(s.has[:lowest+1], func(a Answer) bool { return a != No })
}

// byChain returns the backend that has one of kubelet's chains, "" if neither is known to. IPv4 decides, and IPv6 where
// IPv4 has no such chain. The answer is certain if nothing unknown could change it, and the families are not known to
// differ.
func byChain(nft, legacy Backend, has func(About) Answer) (mode Mode, certain bool) {
	certainlyNFT, certainlyLegacy := true, true
	for _, f := range families {
		inNFT, inLegacy := has(nft[f]), has(legacy[f])
		certainlyLegacy = certainlyLegacy && inNFT == No
		switch {
		case mode == "" && inNFT == Yes:
			mode, certain = NFT, certainlyNFT
		case mode == "" && inLegacy == Yes:
			mode, certain = Legacy, certainlyLegacy
		case mode == NFT && inNFT == No && inLegacy == Yes, mode == Legacy && inNFT == Yes:
			certain = false // the families differ
		}
		certainlyNFT = certainlyNFT && inLegacy == No
	}
	return mode, certain
}

// onlyOther reports whether a backend cannot work, and the other one does, or may once a module is loaded. IPv4
// decides, and IPv6 where neither backend has IPv4.
func onlyOther(b, other Backend) bool {
	return b[IPv4].Works == No &&
		(other[IPv4].Works != No || b[IPv6].Works == No && other[IPv6].Works != No)
}
