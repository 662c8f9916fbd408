// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
)

// Reason is the row of the decision table that applied.
type Reason string

// The reasons, in the order of the table.
const (
	Override      Reason = "override"
	KubeletHint   Reason = "kubelet-hint"
	KubeletCanary Reason = "kubelet-canary"
	Remembered    Reason = "remembered"
	HostProgram   Reason = "host-program"
	RuleCount     Reason = "rule-count"
	OnlySupported Reason = "only-supported"
	OnlyInstalled Reason = "only-installed"
	Default       Reason = "default"
)

// Kubelet reports that kubelet's chains decided.
func (r Reason) Kubelet() bool { return r == KubeletHint || r == KubeletCanary }

// backend is what is known of one backend, both families together except for what works.
type backend struct {
	hint, canary Answer
	exists       Answer // it has one of the five tables
	hostChain    Answer // it has a chain of iptables that a program of the host makes
	hostTable    Answer // it has a table of nftables' own that a program of the host makes
	rules        Count
	likely       int    // number of rules, the best estimate
	ipv4, ipv6   Answer // it works for the family, as far as is known
}

type row struct {
	reason     Reason
	mode       Mode
	applies    bool
	conclusive bool // nothing that could not be read could overturn the row
}

// decisionTable has the rows in their order. The first one that applies decides.
//
// A hint outranks a canary because a host that changed its backend keeps the former one's canary until it is rebooted.
// Nft wins a tie because it is what a current host uses; what legacy has is more likely left over.
func decisionTable(q Query, nft, legacy backend) [20]row {
	nftHasMost := nft.hasMost(legacy)
	legacyHasMore := legacy.rules.Min > nft.rules.Max

	// Programs of the host may use nftables' own tables alone. Where iptables' rules in nft outnumber legacy's, the row
	// for their number says the same, and for certain.
	nftOutnumbers := nftHasMost && legacy.rules.Max > 0
	onlyNative := nft.hostTable == Yes && legacy.hostChain != Yes && !nftOutnumbers

	// A host may speak IPv4 only, so that nft lacks IPv6 counts only if legacy is known to have it.
	onlyLegacyHasIPv6 := nft.ipv6 == No && legacy.ipv6 == Yes

	// An answer for one backend is certain only if the other is known to have neither kubelet's chains nor those of a
	// program of the host, which could overturn it.
	forNFT := legacy.withoutKubelet() && legacy.hostChain == No
	forLegacy := nft.withoutKubelet() && nft.host() == No

	return [...]row{
		{reason: Override, mode: NFT, applies: q.Override == NFT},
		{reason: Override, mode: Legacy, applies: q.Override == Legacy},

		{reason: KubeletHint, mode: NFT, applies: nft.hint == Yes, conclusive: true},
		{reason: KubeletHint, mode: Legacy, applies: legacy.hint == Yes, conclusive: nft.hint == No},

		{reason: KubeletCanary, mode: NFT, applies: nft.canary == Yes, conclusive: legacy.hint == No},
		{reason: KubeletCanary, mode: Legacy, applies: legacy.canary == Yes, conclusive: nft.withoutKubelet()},

		{
			reason: Remembered, mode: NFT,
			applies:    q.Remembered.holds(NFT, nft),
			conclusive: q.Remembered.Conclusive && legacy.withoutKubelet(),
		},
		{
			reason: Remembered, mode: Legacy,
			applies:    q.Remembered.holds(Legacy, legacy),
			conclusive: q.Remembered.Conclusive && nft.withoutKubelet(),
		},

		{
			reason: HostProgram, mode: NFT,
			applies:    nft.hostChain == Yes && legacy.hostChain != Yes,
			conclusive: forNFT,
		},
		{
			reason: HostProgram, mode: Legacy,
			applies:    legacy.hostChain == Yes && nft.host() != Yes,
			conclusive: forLegacy,
		},
		{
			reason: HostProgram, mode: NFT,
			applies:    onlyNative,
			conclusive: forNFT && legacy.rules.Max == 0,
		},

		{
			reason: RuleCount, mode: NFT,
			applies:    nft.likely > 0 && nft.likely >= legacy.likely,
			conclusive: forNFT && nftHasMost,
		},
		{
			reason: RuleCount, mode: Legacy,
			applies:    legacy.likely > nft.likely,
			conclusive: forLegacy && legacyHasMore,
		},

		{reason: Remembered, mode: NFT, applies: q.Home.binds(NFT)},
		{reason: Remembered, mode: Legacy, applies: q.Home.binds(Legacy)},

		{reason: OnlySupported, mode: NFT, applies: legacy.lacks(nft)},
		{reason: OnlySupported, mode: Legacy, applies: nft.lacks(legacy) || onlyLegacyHasIPv6},

		{reason: OnlyInstalled, mode: NFT, applies: q.Installed == NFT},
		{reason: OnlyInstalled, mode: Legacy, applies: q.Installed == Legacy},

		{reason: Default, mode: NFT, applies: true},
	}
}

// decide returns the first row of the table that applies.
func (q Query) decide(nft, legacy backend) row {
	rows := decisionTable(q, nft, legacy)
	return rows[slices.IndexFunc(rows[:], func(r row) bool { return r.applies })]
}

// Reasons returns all reasons in the order of the decision table.
func Reasons() []Reason {
	return []Reason{
		Override, KubeletHint, KubeletCanary, Remembered, HostProgram, RuleCount, OnlySupported, OnlyInstalled, Default,
	}
}

// withoutKubelet reports that kubelet's chains are known not to be in this backend.
func (b backend) withoutKubelet() bool { return b.hint == No && b.canary == No }

// host says whether a program of the host keeps rules in this backend.
func (b backend) host() Answer { return either(b.hostChain, b.hostTable) }

// hasMost reports that nft is known to have rules, and as many as legacy.
func (b backend) hasMost(legacy backend) bool { return b.rules.Min >= max(legacy.rules.Max, 1) }

// lacks reports that this backend cannot work where the other one can, or may, once a module is loaded. IPv4 decides;
// IPv6 does where neither backend has IPv4.
func (b backend) lacks(other backend) bool {
	return b.ipv4 == No && (other.ipv4 != No || b.ipv6 == No && other.ipv6 != No)
}

// backends brings the evidence of both families together.
func (q Query) backends(e [4]Evidence) (nft, legacy backend) {
	together := func(v4, v6 Evidence) backend {
		return backend{
			hint:      either(v4.Hint, v6.Hint),
			canary:    either(v4.Canary, v6.Canary),
			exists:    either(v4.exists, v6.exists),
			hostChain: either(v4.HostChain, v6.HostChain),
			hostTable: either(v4.HostTable, v6.HostTable),
			rules:     v4.Rules.plus(v6.Rules),
			likely:    v4.likely() + v6.likely(),
			ipv4:      q.works(v4),
			ipv6:      q.works(v6),
		}
	}
	return together(e[0], e[1]), together(e[2], e[3])
}

// likely is the number of rules for a guess.
func (e Evidence) likely() int { return max(e.Estimate, e.Rules.Min) }

// works says whether the backend can be used for the family: the kernel has it, and a dry run did not show otherwise.
// What a dry run shows is no reason to run programs that are not installed: those that are may still be able to do
// something.
func (q Query) works(e Evidence) Answer {
	if !q.Installed.exists() && slices.ContainsFunc(e.Features, func(f Feature) bool { return f.Has == No }) {
		return No
	}
	return e.Supported
}

// either is yes if one is yes and no if both are no.
func either(a, b Answer) Answer {
	if most := max(a, b); most == Yes || a == b {
		return most
	}
	return Unknown
}

func (q Query) result(e [4]Evidence) Result {
	nft, legacy := q.backends(e)
	r := q.decide(nft, legacy)
	result := Result{
		Version: JSONVersion, Mode: r.mode, Reason: r.reason, Conclusive: r.conclusive,
		Evidence: e[:], Conflicts: conflicts(nft, legacy),
	}
	if r.reason == Remembered {
		m := q.Remembered // a pointer to it would move the query to the heap
		if !m.holds(NFT, nft) && !m.holds(Legacy, legacy) {
			m = q.Home
			result.FromHome = true
		}
		result.Remembered = &m
	}
	return result
}
