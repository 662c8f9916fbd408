// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// This file decodes what the rules of a table do, for doctor. A wrapped call has no use for it.

// hookNames are the names of built-in chains: enum nf_inet_hooks.
var hookNames = [hooks]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// sizeofMatch is that of struct xt_entry_match, which has the layout of struct xt_entry_target.
const sizeofMatch = sizeofTarget

// parseChains decodes the entries of a table as parseEntries does, and what they do.
func parseChains(ipv6 bool, align int, h header, b []byte) ([]iptables.Chain, error) {
	_, err := parseEntries(ipv6, align, h, b, func([]byte) bool { return false }) // checks every length
	if err != nil {
		return nil, err
	}
	offset, size := entryLayout(ipv6, align)
	var chains []iptables.Chain
	var current *iptables.Chain
	begins := map[int]int{}   // the chains, by the offset of their first entry
	jumps := map[[2]int]int{} // the offsets to which rules lead, by chain and rule
	closeChain := func() {
		if current != nil && !current.Base && len(current.Rules) > 0 { // what returns from it is no rule
			current.Rules = current.Rules[:len(current.Rules)-1]
			delete(jumps, [2]int{len(chains) - 1, len(current.Rules)})
		}
	}
	for at := 0; at < len(b); {
		entry := b[at:]
		next := int(binary.NativeEndian.Uint16(entry[offset+2:]))
		entry = entry[:next]
		target := entry[binary.NativeEndian.Uint16(entry[offset:]):]
		matches := entry[size : len(entry)-len(target)]
		for hook := range hooks {
			if h.valid&(1<<hook) != 0 && int(h.first[hook]) == at {
				chains = append(chains, iptables.Chain{Name: hookNames[hook], Base: true})
				current = &chains[len(chains)-1]
			}
		}
		rule, jump := parseRule(matches, target)
		switch {
		case at+next == len(b): // the end
		case rule.Target == "ERROR":
			closeChain()
			chains = append(chains, iptables.Chain{Name: string(cString(target[sizeofTarget:][:errorNameSize]))})
			current = &chains[len(chains)-1]
			begins[at+next] = len(chains) - 1
		case current == nil:
			return nil, errBadTable
		case current.Base && h.isPolicy(at):
			current.Drops = rule.Target != "ACCEPT"
		default:
			if jump >= 0 && jump != at+next { // a rule without a target leads to the next entry
				jumps[[2]int{len(chains) - 1, len(current.Rules)}] = jump
			}
			current.Rules = append(current.Rules, rule)
		}
		at += next
	}
	closeChain()
	for where, jump := range jumps {
		to, known := begins[jump]
		if !known {
			return nil, errBadTable
		}
		chains[where[0]].Rules[where[1]].Target = chains[to].Name
	}
	return chains, nil
}

// isPolicy reports whether the entry at an offset is the policy of a built-in chain.
func (h header) isPolicy(at int) bool {
	for hook := range hooks {
		if h.valid&(1<<hook) != 0 && int(h.policy[hook]) == at {
			return true
		}
	}
	return false
}

// parseRule decodes the matches and the target of an entry. jump is the offset to which the rule leads, -1 for none.
//
//	struct xt_standard_target {
//		struct xt_entry_target target;  // its name is ""
//		int verdict;                    // an offset, or -NF_DROP - 1 and the like; XT_RETURN is -NF_REPEAT - 1
//	};
//	struct xt_NFQ_info_v2 {
//		__u16 queuenum;
//		__u16 queues_total;
//		__u16 bypass;                   // in v3 flags, of which NFQ_FLAG_BYPASS is the first
//	};
func parseRule(matches, target []byte) (r iptables.Rule, jump int) {
	for len(matches) >= sizeofMatch {
		r.Uses = append(r.Uses, "-m "+string(cString(matches[2:2+targetNameSize])))
		size := int(binary.NativeEndian.Uint16(matches))
		if size < sizeofMatch || size > len(matches) {
			break
		}
		matches = matches[size:]
	}
	r.Target = string(cString(target[2 : 2+targetNameSize]))
	revision, data := target[sizeofTarget-1], target[sizeofTarget:]
	switch {
	case r.Target == "" && len(data) >= 4:
		verdict := int(int32(binary.NativeEndian.Uint32(data)))
		r.Target = map[int]string{-1: "DROP", -2: "ACCEPT", -4: "QUEUE", -5: "RETURN"}[verdict]
		return r, max(verdict, -1)
	case r.Target == "NFQUEUE" && revision >= 2 && len(data) >= 6:
		r.Bypass = binary.NativeEndian.Uint16(data[4:])&1 != 0
	}
	if r.Target != "" {
		r.Uses = append(r.Uses, "-j "+r.Target)
	}
	return r, -1
}
