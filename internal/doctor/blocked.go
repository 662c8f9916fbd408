// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"slices"
)

// What somebody blocks on purpose must stay blocked when chains are removed from the backend that the host does not
// use. It does where the host's own backend has the same rules.

// opens reports whether one of these rules, which the removal takes away, drops packets that the host's own table may
// let pass: a packet that comes to it must come to the same rule there, by the same jumps.
func opens(t, host *saved, lost []savedRule) bool {
	isLost := set(lost)
	drops := func(rule savedRule) bool { return isLost[rule] && slices.Contains(dropping, rule.target) }
	leadsToDrop := t.chainsWith(drops)
	met := host.met(t)
	for _, p := range t.policies {
		here, inHost := set(t.reachable(p.chain)), set(host.reachable(p.chain))
		for _, rule := range t.rules {
			onTheWay := drops(rule) || leadsToDrop[rule.target]
			same := met[rule] && inHost[rule.chain]
			if here[rule.chain] && onTheWay && !same {
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

// met are the rules to which a packet comes in this table if it comes to the same rule in the other one. Two tables
// with "-A X -j DROP" are not enough: where this one also has "-A X -p tcp -j RETURN", TCP never comes to the DROP.
// That rule does no harm if the other table has it too, and before the DROP: then TCP does not come to it there either.
func (t *saved) met(other *saved) map[savedRule]bool {
	place := map[savedRule]int{} // in the other table
	for i, rule := range slices.Backward(other.rules) {
		place[rule] = i
	}
	mayLeave := t.leaving()
	differ := t.differing(other)
	met := map[savedRule]bool{}
	earliest := map[string]int{} // by chain: a rule has to be here or later in the other table
	for _, rule := range t.rules {
		i, both := place[rule]
		met[rule] = met[rule] || both && i >= earliest[rule.chain]
		if !mayLeave(rule) {
			continue
		}
		sameThere := both && !differ[rule.target] && !other.native[rule.chain]
		if sameThere {
			earliest[rule.chain] = max(earliest[rule.chain], i+1)
		} else {
			earliest[rule.chain] = len(other.rules) // none is
		}
	}
	return met
}

// leaving returns a test for rules by which a packet may leave their chain before the rules that follow. A packet that
// is dropped does not count: nothing has to be dropped after that.
func (t *saved) leaving() func(savedRule) bool {
	isChain := set(t.chains)
	decides := func(rule savedRule) bool {
		goesOn := rule.target == "" || isChain[rule.target] || slices.Contains(passing, rule.target)
		return !goesOn && !slices.Contains(dropping, rule.target)
	}
	deciding := t.chainsWith(decides)
	return func(rule savedRule) bool {
		return rule.diverts || rule.target == "RETURN" || decides(rule) || deciding[rule.target]
	}
}

// differing are the chains that have other rules in the other table, or may have, or lead to such.
func (t *saved) differing(other *saved) map[string]bool {
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
	end := t.end(chain, other.met(t), t.differing(other))
	if end == "" {
		return slices.ContainsFunc(t.policies, func(p policy) bool { return p.chain == chain && p.verdict != accept })
	}
	return slices.Contains(dropping, end)
}

// end is the target of the rule, one without a condition, by which all packets leave that are still in a chain; "" if
// there is none. Packets that have left the other table by the same rule do not count. met are the rules that they come
// to there, and differ the chains that are not the same there.
func (t *saved) end(chain string, met map[savedRule]bool, differ map[string]bool) string {
	for _, rule := range t.inChains([]string{chain}) {
		if !rule.unconditional() {
			continue
		}
		if rule.target == "RETURN" {
			return ""
		}
		dropped := slices.Contains(dropping, rule.target)
		sameThere := met[rule] && !differ[rule.target] && !rule.diverts
		if sameThere && !dropped {
			continue
		}
		end := rule.target
		switch {
		case t.isChain(rule.target) && met[rule]:
			end = t.end(rule.target, met, differ)
		case t.isChain(rule.target): // nothing comes to that chain in the other table, as far as is known
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
