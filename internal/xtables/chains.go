// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// This file decodes what the rules of a table do, for doctor. A wrapped call has no use for it.

// sizeofMatch is that of struct xt_entry_match, which has the layout of struct xt_entry_target.
const sizeofMatch = sizeofTarget

// entry is one entry of a table: a rule, a policy, the head of a user-defined chain, or the end.
type entry struct {
	at, next        int // the offsets of this entry and of the next one
	matches, target []byte
}

// chain is the name of the user-defined chain of which the entry is the head, "" for another entry.
func (e entry) chain() string {
	if string(cString(e.target[2:2+targetNameSize])) != "ERROR" {
		return ""
	}
	return string(cString(e.target[sizeofTarget:][:errorNameSize]))
}

// split returns the entries but the last one, which is the end. parseEntries must have checked their lengths.
func split(ipv6 bool, align int, b []byte) (entries []entry) {
	offset, size := entryLayout(ipv6, align)
	for at := 0; ; {
		next := at + int(binary.NativeEndian.Uint16(b[at+offset+2:]))
		target := at + int(binary.NativeEndian.Uint16(b[at+offset:]))
		if next == len(b) {
			return entries
		}
		entries = append(entries, entry{at: at, next: next, matches: b[at+size : target], target: b[target:next]})
		at = next
	}
}

// parseChains decodes the entries of a table as parseEntries does, and what they do.
func parseChains(ipv6 bool, align int, h header, b []byte) ([]iptables.Chain, error) {
	_, err := parseEntries(ipv6, align, h, b, func([]byte) bool { return false }) // checks every length
	if err != nil {
		return nil, err
	}
	entries := split(ipv6, align, b)
	names := map[int]string{} // of user-defined chains, by the offset of their first rule
	for _, e := range entries {
		if e.chain() != "" {
			names[e.next] = e.chain()
		}
	}
	var chains []iptables.Chain
	for _, e := range entries {
		for hook := range hooks {
			if h.valid&(1<<hook) != 0 && int(h.first[hook]) == e.at {
				chains = append(chains, iptables.Chain{Name: hookNames[hook], Base: true})
			}
		}
		if e.chain() != "" {
			chains = append(chains, iptables.Chain{Name: e.chain()})
			continue
		}
		if len(chains) == 0 {
			return nil, errBadTable
		}
		rule, jump := parseRule(e.matches, e.target)
		leads := jump >= 0 && jump != e.next // a rule without a target leads to the next entry
		if leads {
			rule.Target = names[jump]
		}
		c := &chains[len(chains)-1]
		switch {
		case leads && rule.Target == "":
			return nil, errBadTable
		case c.Base && h.isPolicy(e.at):
			c.Drops = rule.Target != "ACCEPT"
		default:
			c.Rules = append(c.Rules, rule)
		}
	}
	for i, c := range chains {
		if !c.Base && len(c.Rules) > 0 { // what returns from a user-defined chain is no rule
			chains[i].Rules = c.Rules[:len(c.Rules)-1]
		}
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
