// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
)

// Native is a table of nf_tables that iptables does not use. Packets pass it, and iptables does not list it.
type Native struct {
	Table   string   `json:"table"`             // "inet firewalld"
	Program string   `json:"program,omitempty"` // that makes it, if the name is known
	Rules   int      `json:"rules"`
	Drops   []string `json:"drops,omitempty"` // the hooks at which its policy is to drop: "output"
}

var nftFamilies = []uint8{
	unix.NFPROTO_IPV4, unix.NFPROTO_IPV6, unix.NFPROTO_INET,
	unix.NFPROTO_ARP, unix.NFPROTO_BRIDGE, unix.NFPROTO_NETDEV,
}

// readNFT asks nf_tables for all tables, chains and rules. What was read before an error counts.
func readNFT() (c contents) {
	const tries = 3 // of a ruleset that changes under way
	for range tries {
		var err error
		c, err = readOnce()
		c.whole = err == nil
		if !errors.Is(err, nft.ErrChanged) {
			break
		}
	}
	return c
}

func readOnce() (c contents, err error) {
	var conn nft.Conn
	defer conn.Close()
	r := reading{tables: map[string]table{}, native: map[string]*Native{}}
	for _, question := range []struct {
		get  uint16
		each func(nft.Message)
	}{
		{unix.NFT_MSG_GETTABLE, r.table},
		{unix.NFT_MSG_GETCHAIN, r.chain},
		{unix.NFT_MSG_GETRULE, r.rule},
	} {
		// Each family has its own dump, so that the size of one does not hide another one.
		for _, family := range nftFamilies {
			failed := conn.Dump(question.get, family, func(m nft.Message) error {
				question.each(m)
				return nil
			})
			err = cmp.Or(err, failed)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.tables)) {
		r.contents.tables = append(r.contents.tables, r.tables[key])
	}
	for _, key := range slices.Sorted(maps.Keys(r.native)) {
		r.contents.native = append(r.contents.native, *r.native[key])
	}
	return r.contents, err
}

// reading is what was read so far, by the names of tables.
type reading struct {
	contents contents
	tables   map[string]table
	native   map[string]*Native
}

// table decodes NFT_MSG_NEWTABLE. What is in a dormant table acts on no packet, so it is left out.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_TABLE_NAME    string
//	NFTA_TABLE_FLAGS   __be32: NFT_TABLE_F_DORMANT 1
func (r *reading) table(m nft.Message) {
	if m.Attributes().Number(unix.NFTA_TABLE_FLAGS)&unix.NFT_TABLE_F_DORMANT != 0 {
		return
	}
	key, name := m.Table(unix.NFTA_TABLE_NAME), m.Attributes().String(unix.NFTA_TABLE_NAME)
	family, isIP := familyOf(m)
	if isIP && iptables.IsTable(name) {
		r.tables[key] = newTable(family, name)
		return
	}
	r.native[key] = &Native{Table: key, Program: ownerOfTable(key)}
}

// familyOf is the family of a message, if iptables has it.
func familyOf(m nft.Message) (f detect.Family, isIP bool) {
	if m.Family() == unix.NFPROTO_IPV6 {
		return detect.IPv6, true
	}
	return detect.IPv4, m.Family() == unix.NFPROTO_IPV4
}

// chain decodes NFT_MSG_NEWCHAIN. Only base chains have a hook and a policy.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME   string
//	NFTA_CHAIN_POLICY   __be32: NF_DROP 0, NF_ACCEPT 1
//	NFTA_CHAIN_HOOK     nested:
//		NFTA_HOOK_HOOKNUM   __be32
func (r *reading) chain(m nft.Message) {
	a := m.Attributes()
	hook := a.Find(unix.NFTA_CHAIN_HOOK)
	drops := hook != nil && a.Find(unix.NFTA_CHAIN_POLICY) != nil && a.Number(unix.NFTA_CHAIN_POLICY) == 0
	key := m.Table(unix.NFTA_CHAIN_TABLE)
	t, known := r.tables[key]
	n := r.native[key]
	switch {
	case known:
		*t.chain(a.String(unix.NFTA_CHAIN_NAME)) = chain{base: hook != nil, drops: drops}
	case n != nil && drops:
		name := hookName(m.Family(), hook.Number(unix.NFTA_HOOK_HOOKNUM))
		if !slices.Contains(n.Drops, name) {
			n.Drops = append(n.Drops, name)
		}
	}
}

// hookName is the name of a hook as nft has it: enum nf_inet_hooks, nf_arp_hooks, nf_dev_hooks.
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

// rule decodes NFT_MSG_NEWRULE.
func (r *reading) rule(m nft.Message) {
	a := m.Attributes()
	key := m.Table(unix.NFTA_RULE_TABLE)
	t, known := r.tables[key]
	n := r.native[key]
	switch {
	case known:
		rule := parseRule(a)
		c := t.chain(a.String(unix.NFTA_RULE_CHAIN))
		c.targets = append(c.targets, rule.target)
		c.native = c.native || rule.isNative()
		for _, extension := range rule.uses {
			r.contents.use(t.family, extension)
		}
	case n != nil:
		n.Rules++
	}
}
