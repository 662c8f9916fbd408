// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// nftFaults lists what makes iptables-nft fail in its own tables, or have no effect there, although it lists them:
// somebody has made it so with nft. What cannot be listed has no faults.
func nftFaults() (all []string) {
	for _, family := range []uint8{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6} {
		_ = dump(unix.NFT_MSG_GETTABLE, family, func(a netlink.Attributes) { all = append(all, tableFaults(a)...) })
		var chains []nftChain
		_ = dump(unix.NFT_MSG_GETCHAIN, family, func(a netlink.Attributes) { chains = append(chains, newChain(a)) })
		for _, c := range chains {
			all = append(all, c.faults()...)
		}
	}
	return all
}

// dump has the kernel list objects of nf_tables, and hands out the attributes of each.
func dump(what uint16, family uint8, each func(netlink.Attributes)) error {
	fd, err := netlink.Open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = netlink.Send(fd, netlink.Request(unix.NFNL_SUBSYS_NFTABLES<<8|what, unix.NLM_F_DUMP, 1, family, nil))
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		datagram, err := netlink.Receive(fd, buf)
		if err != nil {
			return err
		}
		for len(datagram) > 0 {
			var m netlink.Message
			m, datagram, err = netlink.Next(datagram)
			switch {
			case err != nil:
				return err
			case m.Kind == unix.NLMSG_ERROR:
				return m.Errno()
			case m.Kind == unix.NLMSG_DONE:
				return nil
			}
			each(m.Attributes())
		}
	}
}

// baseChains are the chains that iptables hooks into the kernel, by table.
var baseChains = map[string]string{
	"filter":   "INPUT FORWARD OUTPUT",
	"nat":      "PREROUTING INPUT OUTPUT POSTROUTING",
	"mangle":   "PREROUTING INPUT FORWARD OUTPUT POSTROUTING",
	"raw":      "PREROUTING OUTPUT",
	"security": "INPUT FORWARD OUTPUT",
}

// tableFaults reads a table of the list.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_TABLE_NAME   string
//	NFTA_TABLE_FLAGS  __be32: NFT_TABLE_F_DORMANT 1, NFT_TABLE_F_OWNER 2
func tableFaults(a netlink.Attributes) (all []string) {
	const flagOwner = 2 // since Linux 5.12; golang.org/x/sys/unix does not have it
	name := unix.ByteSliceToString(a.Find(unix.NFTA_TABLE_NAME))
	if baseChains[name] == "" {
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

// nftChain is a chain of the list.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_CHAIN_TABLE  string
//	NFTA_CHAIN_NAME   string
//	NFTA_CHAIN_HOOK   nested, only for a base chain
type nftChain struct {
	table, name string
	hooked      bool
}

func newChain(a netlink.Attributes) nftChain {
	return nftChain{
		table:  unix.ByteSliceToString(a.Find(unix.NFTA_CHAIN_TABLE)),
		name:   unix.ByteSliceToString(a.Find(unix.NFTA_CHAIN_NAME)),
		hooked: len(a.Find(unix.NFTA_CHAIN_HOOK)) > 0,
	}
}

// faults says what is wrong with a chain of iptables' tables: one of iptables' names without a hook, or a hook of
// another name.
func (c nftChain) faults() []string {
	base := baseChains[c.table]
	own := slices.Contains(strings.Fields(base), c.name)
	switch {
	case base == "" || own == c.hooked:
		return nil
	case own:
		return []string{"chain " + c.name + " of table " + c.table + " has no hook, so no packet enters it"}
	}
	return []string{fmt.Sprintf("chain %q of table %s is not iptables' own", c.name, c.table)}
}
