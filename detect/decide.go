// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Reason is the line of the decision table that held.
type Reason string

// The reasons, in the order in which they are tried.
const (
	Override      Reason = "override"
	KubeletHint   Reason = "kubelet-hint"
	KubeletCanary Reason = "kubelet-canary"
	RuleCount     Reason = "rule-count"
	OnlySupported Reason = "only-supported"
	OnlyInstalled Reason = "only-installed"
	Default       Reason = "default"
)

// facts is all that a decision rests on.
type facts struct {
	override    Mode
	nft, legacy side
}

// side is what is known of one backend, both families together.
type side struct {
	supported Answer
	installed Answer
	compat    Answer // nft's bridge to the matches and targets of x_tables
	hint      Answer
	canary    Answer
	rules     Count
}

// noKubelet says that kubelet's chains are known not to be in this backend.
func (s side) noKubelet() bool { return s.hint == No && s.canary == No }

// decide is the decision table: the first line that holds. The last column says whether the answer is conclusive: it
// names what must be known for certain so that nothing unread could overturn the line.
//
// A hint outranks a canary because a host that changed its mode keeps the old backend's canary until it is restarted.
// Nft wins a tie because it is what a current host uses; legacy's leftovers are the likelier ones.
func decide(f facts) (Mode, Reason, bool) {
	nft, legacy := f.nft, f.legacy
	more, comparable := compare(nft.rules, legacy.rules)
	switch {
	case f.override != "":
		return f.override, Override, false

	case nft.hint == Yes:
		return NFT, KubeletHint, true
	case legacy.hint == Yes:
		return Legacy, KubeletHint, nft.hint == No

	case nft.canary == Yes:
		return NFT, KubeletCanary, legacy.hint == No
	case legacy.canary == Yes:
		return Legacy, KubeletCanary, nft.noKubelet()

	case more == NFT:
		return NFT, RuleCount, comparable && legacy.noKubelet()
	case more == Legacy:
		return Legacy, RuleCount, comparable && nft.noKubelet()

	case nft.supported == No && legacy.supported != No:
		return Legacy, OnlySupported, false
	case legacy.supported == No && nft.supported != No:
		return NFT, OnlySupported, false

	case nft.installed == No && legacy.installed == Yes:
		return Legacy, OnlyInstalled, false
	case legacy.installed == No && nft.installed == Yes:
		return NFT, OnlyInstalled, false

	case nft.compat == No && legacy.supported != No:
		// Nearly every rule of iptables-nft needs it: a comment is enough.
		return Legacy, OnlySupported, false

	default:
		return NFT, Default, false
	}
}

// compare returns the backend with more rules, nft if they have the same number, and whether that is certain. Where
// the bounds overlap it goes by what was seen. Where no rule was seen it returns "".
func compare(nft, legacy Count) (more Mode, certain bool) {
	switch {
	case nft.Min > 0 && nft.Min >= legacy.Max:
		return NFT, true
	case legacy.Min > nft.Max:
		return Legacy, true
	case legacy.Min > nft.Min:
		return Legacy, false
	case nft.Min > 0:
		return NFT, false
	default:
		return "", nft.Max == 0 && legacy.Max == 0
	}
}

// Conflict is a contradiction between the two backends: something that a host in one mode does not have.
type Conflict string

// The conflicts. After a host changed its mode without a restart, the backend it left shows one of them.
const (
	HintInBoth   Conflict = "hint-in-both"   // HintChain is in both backends
	CanaryInBoth Conflict = "canary-in-both" // CanaryChain is in both backends
	StrayCanary  Conflict = "stray-canary"   // CanaryChain is in one backend, HintChain in the other only
	RulesInBoth  Conflict = "rules-in-both"  // both backends have rules in the five tables
)

// conflicts lists the contradictions that are known, gravest first.
func conflicts(f facts) []Conflict {
	var found []Conflict
	nft, legacy := f.nft, f.legacy
	if nft.hint == Yes && legacy.hint == Yes {
		found = append(found, HintInBoth)
	}
	switch {
	case nft.canary == Yes && legacy.canary == Yes:
		found = append(found, CanaryInBoth)
	case nft.hint == Yes && legacy.hint == No && legacy.canary == Yes,
		legacy.hint == Yes && nft.hint == No && nft.canary == Yes:
		found = append(found, StrayCanary)
	}
	if nft.rules.Min > 0 && legacy.rules.Min > 0 {
		found = append(found, RulesInBoth)
	}
	return found
}
