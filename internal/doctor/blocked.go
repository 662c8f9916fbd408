// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
)

// What somebody blocks on purpose must stay blocked when chains are removed from the backend that the host does not
// use. It does where the host's own backend has the same rules.

// opens reports whether one of these rules, which the removal takes away, drops packets or leads to a rule that does,
// and the host's own table does not do the same.
func opens(t, host *saved, lost []savedRule) bool {
	drops := t.droppingChains()
	met := host.met(set(t.rules))
	for _, p := range t.policies {
		reached := set(t.reachable(p.chain))
		hosts := set(host.reachable(p.chain))
		for _, rule := range lost {
			ends := slices.Contains(dropping, rule.target) || drops[rule.target]
			if ends && reached[rule.chain] && !(met[rule] && hosts[rule.chain]) {
				return true
			}
		}
	}
	return false
}

// droppingChains are those in which a rule drops packets, or leads to one that does.
func (t *saved) droppingChains() map[string]bool {
	drops := map[string]bool{}
	for before := -1; len(drops) > before; {
		before = len(drops)
		for _, rule := range t.rules {
			if slices.Contains(dropping, rule.target) || drops[rule.target] {
				drops[rule.chain] = true
			}
		}
	}
	return drops
}

// met are the rules that a packet comes to in their chain unless a rule that both tables have lets it go before.
func (t *saved) met(others map[savedRule]bool) map[savedRule]bool {
	met := map[savedRule]bool{}
	hidden := map[string]bool{} // chains in which a rule of this table alone has let packets go
	for _, rule := range t.rules {
		met[rule] = met[rule] || !hidden[rule.chain]
		letsGo := rule.target == accept || rule.target == "RETURN" || rule.diverts
		if letsGo && !others[rule] {
			hidden[rule.chain] = true
		}
	}
	return met
}

// closes reports whether a built-in chain drops what none of its rules accepts.
func (t *saved) closes(chain string) bool {
	for _, rule := range t.inChains([]string{chain}) {
		unconditional := strings.HasPrefix(rule.spec, "-j ")
		if unconditional && rule.target == accept {
			return false
		}
		if unconditional && slices.Contains(dropping, rule.target) {
			return true
		}
	}
	return slices.ContainsFunc(t.policies, func(p policy) bool { return p.chain == chain && p.verdict != accept })
}

func set[T comparable](all []T) map[T]bool {
	in := map[T]bool{}
	for _, one := range all {
		in[one] = true
	}
	return in
}
