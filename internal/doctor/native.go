// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// inKernel is a table of nf_tables, as the kernel has it.
type inKernel struct {
	rules  map[string]int          // how many, by chain
	native map[string]map[int]bool // by chain, the places in it of rules that nft, not iptables-nft, has made
}

// rulesInKernel lists the tables of a family that have rules. For a rule that nft has made, iptables-nft may print
// another one, "-j DROP" for "ip saddr @blocked drop", or none. loses says what likeIPTables has to know of it.
func rulesInKernel(family detect.Family, loses bool) (tables map[string]inKernel, err error) {
	fd, err := netlink.Open()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	const kind = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
	err = netlink.Send(fd, netlink.Request(kind, unix.NLM_F_DUMP, 1, netlink.Family(family == detect.IPv6), nil))
	if err != nil {
		return nil, err
	}
	tables = map[string]inKernel{}
	buf := make([]byte, 64<<10)
	for {
		datagram, err := netlink.Receive(fd, buf)
		if err != nil {
			return nil, err
		}
		done, err := takeRules(datagram, tables, loses)
		if done || err != nil {
			return tables, err
		}
	}
}

// takeRules takes the rules of one datagram of a dump.
func takeRules(datagram []byte, tables map[string]inKernel, loses bool) (done bool, err error) {
	for len(datagram) > 0 {
		var m netlink.Message
		m, datagram, err = netlink.Next(datagram)
		switch {
		case err != nil:
			return false, err
		case m.Flags&unix.NLM_F_DUMP_INTR != 0: // the last message may be the first to say so
			return false, fmt.Errorf("list the rules of nf_tables: %w", unix.EINTR)
		case m.Kind == unix.NLMSG_ERROR || m.Kind == unix.NLMSG_DONE:
			errno := m.Errno()
			if errno != 0 {
				return false, fmt.Errorf("list the rules of nf_tables: %w", errno)
			}
			return true, nil
		}
		table := unix.ByteSliceToString(m.Attributes().Find(unix.NFTA_RULE_TABLE))
		t, known := tables[table]
		if !known {
			t = inKernel{rules: map[string]int{}, native: map[string]map[int]bool{}}
			tables[table] = t
		}
		t.add(m, loses)
	}
	return false, nil
}

// add takes the next rule of a table, after those before it in its chain.
func (t inKernel) add(rule netlink.Message, loses bool) {
	chain := unix.ByteSliceToString(rule.Attributes().Find(unix.NFTA_RULE_CHAIN))
	place := t.rules[chain]
	t.rules[chain]++
	if likeIPTables(rule, loses) {
		return
	}
	if t.native[chain] == nil {
		t.native[chain] = map[int]bool{}
	}
	t.native[chain][place] = true
}
