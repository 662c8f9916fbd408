// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"cmp"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// This file reads all that nf_tables has, for doctor. A wrapped call has no use for it.

// Ruleset is what nf_tables has in one network namespace. Dormant tables act on no packet, so they are left out.
type Ruleset struct {
	Tables []iptables.Table // those that iptables uses
	Native []Native         // the others
}

// Native is a table of nf_tables that iptables does not use. Packets pass it, and iptables does not list it.
type Native struct {
	Table string   `json:"table"` // "inet firewalld"
	Rules int      `json:"rules"`
	Drops []string `json:"drops,omitempty"` // the hooks at which its policy is to drop: "output"
}

var families = []uint8{
	unix.NFPROTO_IPV4, unix.NFPROTO_IPV6, unix.NFPROTO_INET,
	unix.NFPROTO_ARP, unix.NFPROTO_BRIDGE, unix.NFPROTO_NETDEV,
}

// ReadRuleset reads all tables, chains and rules, at most MaxObjects of each family. With an error, the Ruleset is what
// was read: it may be incomplete.
func ReadRuleset() (Ruleset, error) {
	var conn Conn
	defer conn.Close()
	r := reading{tables: map[string]*tableRead{}}
	var err error
	for _, question := range []struct {
		get  uint16
		each func(Message)
	}{
		{get: unix.NFT_MSG_GETTABLE, each: r.table},
		{get: unix.NFT_MSG_GETCHAIN, each: r.chain},
		{get: unix.NFT_MSG_GETRULE, each: r.rule},
	} {
		// Each family has its own dump, so that the size of one does not hide another one.
		for _, family := range families {
			failed := conn.Dump(question.get, family, func(m Message) error {
				question.each(m)
				return nil
			})
			err = errors.Join(err, failed)
		}
	}
	return r.ruleset(), err
}

// reading is what was read so far. Chains and rules of other tables than these are skipped.
type reading struct {
	tables map[string]*tableRead // by name, as nft prints it
}

// tableRead is a table of iptables, or a native one.
type tableRead struct {
	native *Native
	table  iptables.Table
	chains map[string]int // the places in table.Chains, by name
}

// chain returns the chain of a name, a new one if there is none.
func (t *tableRead) chain(name string) *iptables.Chain {
	at, known := t.chains[name]
	if !known {
		at = len(t.table.Chains)
		t.chains[name] = at
		t.table.Chains = append(t.table.Chains, iptables.Chain{Name: name})
	}
	return &t.table.Chains[at]
}

// ruleset returns the tables, sorted.
func (r reading) ruleset() (all Ruleset) {
	for _, t := range r.tables {
		if t.native != nil {
			all.Native = append(all.Native, *t.native)
		} else {
			all.Tables = append(all.Tables, t.table)
		}
	}
	slices.SortFunc(all.Native, func(a, b Native) int { return cmp.Compare(a.Table, b.Table) })
	slices.SortFunc(all.Tables, func(a, b iptables.Table) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// table decodes NFT_MSG_NEWTABLE.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_TABLE_NAME    string
//	NFTA_TABLE_FLAGS   __be32: NFT_TABLE_F_DORMANT 1
func (r reading) table(m Message) {
	a := m.Attributes()
	key, name := m.Table(unix.NFTA_TABLE_NAME), a.String(unix.NFTA_TABLE_NAME)
	isIP := m.Family() == unix.NFPROTO_IPV4 || m.Family() == unix.NFPROTO_IPV6
	switch {
	case a.Number(unix.NFTA_TABLE_FLAGS)&unix.NFT_TABLE_F_DORMANT != 0:
	case isIP && iptables.IsTable(name):
		table := iptables.Table{IPv6: m.Family() == unix.NFPROTO_IPV6, Name: name}
		r.tables[key] = &tableRead{table: table, chains: map[string]int{}}
	default:
		r.tables[key] = &tableRead{native: &Native{Table: key}}
	}
}

// chain decodes NFT_MSG_NEWCHAIN. Only base chains have a hook and a policy.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME   string
//	NFTA_CHAIN_POLICY   __be32: NF_DROP 0, NF_ACCEPT 1
//	NFTA_CHAIN_HOOK     nested:
//		NFTA_HOOK_HOOKNUM   __be32
func (r reading) chain(m Message) {
	a := m.Attributes()
	hook := a.Find(unix.NFTA_CHAIN_HOOK)
	drops := hook != nil && a.Find(unix.NFTA_CHAIN_POLICY) != nil && a.Number(unix.NFTA_CHAIN_POLICY) == 0
	t := r.tables[m.Table(unix.NFTA_CHAIN_TABLE)]
	switch {
	case t == nil:
	case t.native == nil:
		c := t.chain(a.String(unix.NFTA_CHAIN_NAME))
		c.Base, c.Drops = hook != nil, drops
	case drops:
		name := hookName(m.Family(), hook.Number(unix.NFTA_HOOK_HOOKNUM))
		if !slices.Contains(t.native.Drops, name) {
			t.native.Drops = append(t.native.Drops, name)
		}
	}
}

// hookName is the name of a hook as nft has it: enum nf_inet_hooks, enum nf_dev_hooks, and NF_ARP_IN and the like of
// linux/netfilter_arp.h.
func hookName(family uint8, number uint32) string {
	names := []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}
	switch family {
	case unix.NFPROTO_NETDEV:
		names = []string{"ingress", "egress"}
	case unix.NFPROTO_ARP:
		names = []string{"input", "output", "forward"}
	}
	if int64(number) >= int64(len(names)) {
		return "an unknown hook"
	}
	return names[number]
}

// rule decodes NFT_MSG_NEWRULE. Its chain may not have been read, if there are too many.
func (r reading) rule(m Message) {
	a := m.Attributes()
	t := r.tables[m.Table(unix.NFTA_RULE_TABLE)]
	switch {
	case t == nil:
	case t.native != nil:
		t.native.Rules++
	default:
		c := t.chain(a.String(unix.NFTA_RULE_CHAIN))
		c.Rules = append(c.Rules, parseRule(a))
	}
}
