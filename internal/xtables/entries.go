// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import "encoding/binary"

// Entry is the head of a user-defined chain, the entry that returns from one, a rule, or a policy.
type Entry struct {
	Head     string // the chain that begins here
	Policy   string // the built-in chain of which it is the policy: "INPUT"
	Target   string // "DROP", "ACCEPT", "QUEUE", "RETURN", or the target's name; "" if it jumps
	Revision int    // of the target
	Info     []byte // the target's own struct
}

// hookNames are the names of built-in chains: enum nf_inet_hooks.
var hookNames = [hooks]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// ReadEntries is Read for doctor. It calls each with all entries except the end, none if the table is larger than
// Limit.
func ReadEntries(ipv6 bool, table string, each func(Entry)) (Table, error) {
	return read(ipv6, table, func(h header, align int, b []byte) (Table, error) {
		return walk(ipv6, align, h, b, func(at int, head, target []byte) { each(h.entry(at, head, target)) })
	})
}

// entry decodes the target of an entry. That of a verdict is
//
//	struct xt_standard_target {
//		struct xt_entry_target target;  // its name is ""
//		int verdict;                    // an offset, or -NF_DROP - 1 and the like; XT_RETURN is -NF_REPEAT - 1
//	};
func (h header) entry(at int, head, target []byte) Entry {
	e := Entry{
		Head:     string(head),
		Target:   string(targetName(target)),
		Revision: int(target[sizeofTarget-1]),
		Info:     target[sizeofTarget:],
	}
	for hook, name := range hookNames {
		if h.valid&(1<<hook) != 0 && int(h.policy[hook]) == at {
			e.Policy = name
		}
	}
	if e.Target == "" && len(e.Info) >= 4 {
		verdicts := map[int32]string{-1: "DROP", -2: "ACCEPT", -4: "QUEUE", -5: "RETURN"}
		e.Target = verdicts[int32(binary.NativeEndian.Uint32(e.Info))]
	}
	return e
}
