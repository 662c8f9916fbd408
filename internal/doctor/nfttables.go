// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// nftFaults lists what makes iptables-nft fail in its own tables, or have no effect there, although it lists them:
// somebody has made it so with nft. What cannot be listed has no faults.
func nftFaults() (all []string) {
	var c netlink.Conn
	defer c.Close()
	for _, family := range []uint8{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6} {
		_ = listObjects(&c, unix.NFT_MSG_GETTABLE, family, func(a netlink.Attributes) {
			all = append(all, tableFaults(a)...)
		})
		_ = listObjects(&c, unix.NFT_MSG_GETCHAIN, family, func(a netlink.Attributes) {
			all = append(all, chainFaults(a)...)
		})
	}
	return all
}

// listObjects has the kernel list objects of nf_tables, and hands out the attributes of each.
func listObjects(c *netlink.Conn, get uint16, family uint8, each func(netlink.Attributes)) error {
	const nftables = unix.NFNL_SUBSYS_NFTABLES << 8
	// The kind of the reply precedes that of the question (enum nf_tables_msg_types).
	return c.Ask(nftables|get, nftables|(get-1), unix.NLM_F_DUMP, family, nil, func(m netlink.Message) error {
		each(m.Attributes())
		return nil
	})
}

// tableFaults reads a table of the list.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_TABLE_NAME   string
//	NFTA_TABLE_FLAGS  __be32: NFT_TABLE_F_DORMANT 1, NFT_TABLE_F_OWNER 2
func tableFaults(a netlink.Attributes) (all []string) {
	const flagOwner = 2 // since Linux 5.12; golang.org/x/sys/unix does not have it
	name := unix.ByteSliceToString(a.Find(unix.NFTA_TABLE_NAME))
	if evidence.BaseChains(name) == nil {
		return nil
	}
	flags := a.Number(unix.NFTA_TABLE_FLAGS)
	if flags&unix.NFT_TABLE_F_DORMANT != 0 {
		all = append(all, "table "+name+" is dormant, so nothing in it has an effect")
	}
	if flags&flagOwner != 0 {
		all = append(all, "table "+name+" belongs to a running process, and nobody else can change it")
	}
	return all
}

// chainFaults reads a chain of the list. In iptables' tables, a chain that iptables hooks into the kernel must have a
// hook, and no other one.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_CHAIN_TABLE  string
//	NFTA_CHAIN_NAME   string
//	NFTA_CHAIN_HOOK   nested, only for a base chain
func chainFaults(a netlink.Attributes) []string {
	table := unix.ByteSliceToString(a.Find(unix.NFTA_CHAIN_TABLE))
	name := unix.ByteSliceToString(a.Find(unix.NFTA_CHAIN_NAME))
	hooked := len(a.Find(unix.NFTA_CHAIN_HOOK)) > 0
	base := evidence.BaseChains(table)
	own := slices.Contains(base, name)
	switch {
	case base == nil || own == hooked:
		return nil
	case own:
		return []string{"chain " + name + " of table " + table + " has no hook, so no packet enters it"}
	}
	return []string{fmt.Sprintf("chain %q of table %s is not iptables' own", name, table)}
}
