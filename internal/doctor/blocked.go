// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"slices"
	"strings"
)

// What somebody blocks on purpose must stay blocked when chains are removed from the backend that the host does not
// use. It does where the host's own backend has the same rules.

// opens reports whether one of these rules, which the removal takes away, drops packets that the host's own table may
// let pass: a packet that comes to it must come to the same rule there, by the same jumps.
func opens(t, host *saved, lost []savedRule) bool {
	gone := set(lost)
	drops := func(rule savedRule) bool { return gone[rule] && slices.Contains(dropping, rule.target) }
	leads := t.chainsWith(drops)
	met := host.met(t)
	for _, p := range t.policies {
		reached := set(t.reachable(p.chain))
		hosts := set(host.reachable(p.chain))
		for _, rule := range t.rules {
			matters := reached[rule.chain] && (drops(rule) || leads[rule.target])
			if matters && !(met[rule] && hosts[rule.chain]) {
				return true
			}
		}
	}
	return false
}

// chainsWith are the chains that have such a rule, or lead to one that has.
func (t *saved) chainsWith(such func(savedRule) bool) map[string]bool {
	chains := map[string]bool{}
	for before := -1; len(chains) > before; {
		before = len(chains)
		for _, rule := range t.rules {
			if such(rule) || chains[rule.target] {
				chains[rule.chain] = true
			}
		}
	}
	return chains
}

// met are the rules of this table that a packet reaches if it reaches the same rule of the other table. What comes
// before such a rule in its chain lets no packet go, except by rules that come before it in the other table, too.
func (t *saved) met(other *saved) map[savedRule]bool {
	place := map[savedRule]int{}
	for i, rule := range slices.Backward(other.rules) {
		place[rule] = i
	}
	lets := t.letting()
	unlike := t.unlike(other)
	met := map[savedRule]bool{}
	behind := map[string]int{} // where a chain's rules have to be in the other table
	for _, rule := range t.rules {
		i, both := place[rule]
		met[rule] = met[rule] || both && i >= behind[rule.chain]
		switch {
		case !lets(rule):
		case both && !unlike[rule.target] && !other.native[rule.chain]:
			behind[rule.chain] = max(behind[rule.chain], i+1)
		default:
			behind[rule.chain] = len(other.rules)
		}
	}
	return met
}

// letting returns a test for rules that may let a packet go: past the rules that follow, but not because it is dropped.
func (t *saved) letting() func(savedRule) bool {
	chain := set(t.chains)
	itself := func(rule savedRule) bool {
		goesOn := rule.target == "" || chain[rule.target] || slices.Contains(passing, rule.target)
		return !goesOn && !slices.Contains(dropping, rule.target)
	}
	chains := t.chainsWith(itself)
	return func(rule savedRule) bool {
		return rule.diverts || rule.target == "RETURN" || itself(rule) || chains[rule.target]
	}
}

// unlike are the chains that have other rules in the other table, or may have, or lead to such.
func (t *saved) unlike(other *saved) map[string]bool {
	mine, others := t.byChain(), other.byChain()
	differ := maps.Clone(other.native)
	if differ == nil {
		differ = map[string]bool{}
	}
	for _, tables := range []map[string][]savedRule{mine, others} {
		for chain := range tables {
			differ[chain] = differ[chain] || !slices.Equal(mine[chain], others[chain])
		}
	}
	return t.chainsWith(func(rule savedRule) bool { return differ[rule.chain] || differ[rule.target] })
}

func (t *saved) byChain() map[string][]savedRule {
	rules := map[string][]savedRule{}
	for _, rule := range t.rules {
		rules[rule.chain] = append(rules[rule.chain], rule)
	}
	return rules
}

// closes reports whether a built-in chain drops all packets but those that a condition exempts, and those that the
// other table accepts by the same rule.
func (t *saved) closes(chain string, other *saved) bool {
	end := t.end(chain, other.met(t), t.unlike(other))
	if end == "" {
		return slices.ContainsFunc(t.policies, func(p policy) bool { return p.chain == chain && p.verdict != accept })
	}
	return slices.Contains(dropping, end)
}

// end is the target of the rule by which all packets leave that are still in a chain, "" if there is none. It has no
// condition. A rule by which they have left the other table already is passed over: met are the rules that they reach
// there.
func (t *saved) end(chain string, met map[savedRule]bool, unlike map[string]bool) string {
	for _, rule := range t.inChains([]string{chain}) {
		unconditional := strings.HasPrefix(rule.spec, "-j ") || strings.HasPrefix(rule.spec, "-g ")
		dropped := slices.Contains(dropping, rule.target)
		gone := met[rule] && !unlike[rule.target] && !rule.diverts && !dropped
		switch {
		case !unconditional:
			continue
		case rule.target == "RETURN":
			return ""
		case gone:
			continue
		}
		end := rule.target
		switch {
		case t.isChain(rule.target) && met[rule]:
			end = t.end(rule.target, met, unlike)
		case t.isChain(rule.target):
			end = t.end(rule.target, nil, nil)
		}
		ends := end != "" && !slices.Contains(passing, end)
		if ends || rule.diverts {
			return end
		}
	}
	return ""
}

func set[T comparable](all []T) map[T]bool {
	in := map[T]bool{}
	for _, one := range all {
		in[one] = true
	}
	return in
}
