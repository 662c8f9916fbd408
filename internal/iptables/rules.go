// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package iptables

// What iptables' tables contain, in either backend. internal/nft and internal/xtables read it for doctor. A wrapped
// call has no use for it.

// Table is one of iptables' tables.
type Table struct {
	IPv6   bool
	Name   string // "filter"
	Chains []Chain
}

// String names the table as nft does: "ip filter".
func (t Table) String() string {
	if t.IPv6 {
		return "ip6 " + t.Name
	}
	return "ip " + t.Name
}

// Chain is a chain of a table.
type Chain struct {
	Name  string
	Base  bool // packets enter it
	Drops bool // its policy is not ACCEPT
	Rules []Rule
}

// Rule is what a rule has.
type Rule struct {
	// Target is what happens to a packet: "ACCEPT", "DROP", "QUEUE", "RETURN", the name of a target such as "DNAT", or
	// that of a user-defined chain. It is "" if there is none.
	Target string
	Uses   []string // the extensions of x_tables, as iptables' arguments: "-m comment", "-j MARK"
	Bypass bool     // NFQUEUE lets packets pass while no program reads the queue
	Native bool     // it was made with nft, and iptables may list it without a condition
}
