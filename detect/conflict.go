// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Conflict is a contradiction between the two backends. After a host changed its backend without a reboot, the one it
// left shows it.
type Conflict string

// The conflicts, most severe first.
const (
	HintInBoth         Conflict = "hint-in-both"          // HintChain is in both backends
	CanaryInBoth       Conflict = "canary-in-both"        // CanaryChain is in both backends
	StrayCanary        Conflict = "stray-canary"          // CanaryChain is in one backend, HintChain in the other only
	HostProgramsInBoth Conflict = "host-programs-in-both" // programs of the host keep rules in both backends
	RulesInBoth        Conflict = "rules-in-both"         // both backends have rules in the five tables
)

// Explain returns a sentence for people.
func (c Conflict) Explain() string {
	switch c {
	case HintInBoth:
		return HintChain + " is in both backends: " +
			"the host changed its backend without a reboot, or two kubelets use different ones"
	case CanaryInBoth:
		return CanaryChain + " is in both backends: the host changed its backend without a reboot"
	case StrayCanary:
		return "the canary is in one backend and the hint in the other: " +
			"the canary is left over from the previous backend"
	case HostProgramsInBoth:
		return "programs of the host keep rules in both backends: " +
			"they use different ones, or the host changed its backend without a reboot"
	case RulesInBoth:
		return "both backends have rules: both sets are active, but each backend lists only its own"
	default:
		return string(c)
	}
}

// conflicts lists those that are known.
func conflicts(nft, legacy backend) []Conflict {
	found := []Conflict{}
	add := func(c Conflict, known bool) {
		if known {
			found = append(found, c)
		}
	}
	stray := func(current, former backend) bool {
		return current.hint == Yes && current.canary != Yes && former.hint == No && former.canary == Yes
	}
	add(HintInBoth, nft.hint == Yes && legacy.hint == Yes)
	add(CanaryInBoth, nft.canary == Yes && legacy.canary == Yes)
	add(StrayCanary, stray(nft, legacy) || stray(legacy, nft))
	add(HostProgramsInBoth, nft.host() == Yes && legacy.host() == Yes)
	add(RulesInBoth, nft.rules.Min > 0 && legacy.rules.Min > 0)
	return found
}
