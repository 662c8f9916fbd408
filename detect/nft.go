// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// nfproto is the family's number in nf_tables.
func (f Family) nfproto() uint8 {
	if f == IPv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// absent reports that the error means that there is no such thing.
func absent(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, errNoNFTables) }

// again repeats what a change spoiled while it was read.
func again(read func() error) error {
	var err error
	for range attempts {
		err = read()
		// EAGAIN and a malformed table: a legacy table was replaced between its header and its entries.
		if !errors.Is(err, errInterrupted) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, errBadTable) {
			break
		}
	}
	return err
}

// chain asks for one chain of mangle by its name: the cost does not depend on how many rules or chains there are.
func (s *nftSocket) chain(f Family, name string) (Answer, error) {
	which := attributes(nil).text(unix.NFTA_CHAIN_TABLE, mangle).text(unix.NFTA_CHAIN_NAME, name)
	for m, err := range s.ask(nftKind(unix.NFT_MSG_GETCHAIN), 0, f.nfproto(), which, nftKind(unix.NFT_MSG_NEWCHAIN)) {
		if err == nil {
			err = errors.Join(m.verify(f.nfproto(), unix.NFTA_CHAIN_TABLE, mangle), m.verify(f.nfproto(), unix.NFTA_CHAIN_NAME, name))
		}
		switch {
		case err == nil:
			return Yes, nil
		case absent(err):
			return No, nil
		default:
			return Unknown, fmt.Errorf("ask nf_tables for chain %q: %w", name, err)
		}
	}
	return Unknown, errShortMessage // a reply without the chain
}

// rules counts the rules of one table, or of the whole family if none is named, until there are as many as the limit.
//
// The kernel prepares each part of a dump in advance, as large as the largest buffer that the socket has read into. Where one
// rule is enough, a new socket with a small buffer makes it prepare a dozen, not a hundred, which saves a third of a
// millisecond. An empty reply proves nothing, because a rule that does not fit ends the dump.
func (s *nftSocket) rules(f Family, table string, limit int) (counts, error) {
	if s.open() == nil && limit == 1 {
		few := nftSocket{fd: -1, buf: s.buf[:fewRules]}
		defer few.close()
		if all, err := few.count(f, table, limit); err == nil && all != (counts{}) {
			return all, nil
		}
	}
	return s.count(f, table, limit)
}

// count streams a dump of rules and counts those of the five tables, in a buffer that does not grow.
//
// Not counted, here as in iptables-nft-save, is what follows a rule of more than 32 KiB: the kernel ends the dump there
// and says nothing.
func (s *nftSocket) count(f Family, table string, limit int) (all counts, err error) {
	var which attributes
	if table != "" {
		which = which.text(unix.NFTA_RULE_TABLE, table)
	}
	var now, most [len(tableNames)]int
	total := 0 // with those of a table that may be none of iptables': it need not be read to its end for a bound
	err = again(func() error {
		clear(now[:])
		total = 0
		for m, err := range s.ask(nftKind(unix.NFT_MSG_GETRULE), unix.NLM_F_DUMP, f.nfproto(), which, nftKind(unix.NFT_MSG_NEWRULE)) {
			if err != nil {
				return err
			}
			name, err := m.attribute(unix.NFTA_RULE_TABLE)
			i := slices.Index(tableNames[:], string(cString(name)))
			switch {
			case err != nil:
				return err
			case m.body[0] != f.nfproto() || table != "" && (i < 0 || tableNames[i] != table):
				return errWrongObject
			case i < 0:
				continue
			}
			if all[i].native == "" { // even if it is gone at the next attempt
				chain, err := m.nativeChain()
				if err != nil {
					return err
				}
				all[i].native = string(chain)
			}
			now[i]++
			most[i] = max(most[i], now[i])
			if total++; total >= limit {
				break
			}
		}
		return nil
	})
	if absent(err) {
		return counts{}, nil
	}
	for i := range all {
		switch {
		case err != nil: // what was seen before a change was there, all at once
			all[i].Count = Count{most[i], Unbounded}
		case total >= limit:
			all[i].Count = Count{now[i], Unbounded}
		default:
			all[i].Count = exactly(now[i])
		}
	}
	if err != nil {
		err = fmt.Errorf("count the rules of nf_tables: %w", err)
	}
	return all, err
}

// nftTable is what the chains of one of the five tables say about it.
type nftTable struct {
	exists  bool
	foreign []Chain  // base chains that are not iptables' own
	users   []string // chains that are not hooked into the kernel: those that iptables -N creates
}

// tables reads the chains of the family, and says what is in each of the five tables; the names of user-defined chains only
// if they are wanted. A table without a chain is empty, so it does not exist for iptables.
func (s *nftSocket) tables(f Family, users bool) (tables [len(tableNames)]nftTable, err error) {
	err = again(func() error {
		tables = [len(tableNames)]nftTable{}
		for m, err := range s.ask(nftKind(unix.NFT_MSG_GETCHAIN), unix.NLM_F_DUMP, f.nfproto(), nil, nftKind(unix.NFT_MSG_NEWCHAIN)) {
			if err != nil {
				return err
			}
			c, err := m.chain()
			if err != nil {
				return err
			}
			i := slices.Index(tableNames[:], string(c.table))
			if m.body[0] != f.nfproto() || i < 0 {
				continue
			}
			t := &tables[i]
			t.exists = true
			if c.base && !c.own() {
				t.foreign = append(t.foreign, Chain{tableNames[i], string(c.name)})
			} else if !c.base && users {
				t.users = append(t.users, string(c.name))
			}
		}
		return nil
	})
	if err != nil && !absent(err) {
		return tables, fmt.Errorf("list the chains of nf_tables: %w", err)
	}
	return tables, nil
}

type nftChain struct {
	table, name, kind []byte // parts of the message
	base              bool   // it is hooked into the kernel
	hook              uint32
	priority          int32
}

// chain decodes NFT_MSG_NEWCHAIN: NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, and for base chains NFTA_CHAIN_TYPE and
// NFTA_CHAIN_HOOK, in which are NFTA_HOOK_HOOKNUM and NFTA_HOOK_PRIORITY.
func (m message) chain() (nftChain, error) {
	table, tableErr := m.attribute(unix.NFTA_CHAIN_TABLE)
	name, nameErr := m.attribute(unix.NFTA_CHAIN_NAME)
	kind, kindErr := m.attribute(unix.NFTA_CHAIN_TYPE)
	hook, hookErr := m.attribute(unix.NFTA_CHAIN_HOOK)
	c := nftChain{table: cString(table), name: cString(name), kind: cString(kind), base: hook != nil}
	err := cmp.Or(tableErr, nameErr, kindErr, hookErr)
	if c.base && err == nil {
		var priority uint32
		c.hook, hookErr = attributes(hook).number(unix.NFTA_HOOK_HOOKNUM)
		priority, err = attributes(hook).number(unix.NFTA_HOOK_PRIORITY)
		c.priority, err = int32(priority), cmp.Or(hookErr, err)
	}
	if err != nil {
		return nftChain{}, err
	}
	return c, nil
}

// The base chains of iptables are named after their hooks, which are numbered in this order (enum nf_inet_hooks).
var hookNames = [...]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

const (
	prerouting = 1 << iota
	input
	forward
	output
	postrouting
)

// own reports whether iptables-nft takes a base chain of one of its five tables for its own. If one is not, it calls the
// table incompatible, and prints nothing of it, or in some versions nothing of that chain.
func (c nftChain) own() bool {
	if c.hook >= uint32(len(hookNames)) || string(c.name) != hookNames[c.hook] {
		return false
	}
	hook := 1 << c.hook
	kind, hooks, priority := "filter", input|forward|output, int32(0) // filter
	switch string(c.table) {
	case "raw":
		hooks, priority = prerouting|output, -300
	case mangle:
		hooks, priority = prerouting|input|forward|output|postrouting, -150
		if hook == output {
			kind = "route"
		}
	case "security":
		priority = 150 // iptables-nft has always used this; NF_IP_PRI_SECURITY is 50
	case "nat":
		kind, hooks, priority = "nat", prerouting|input|output|postrouting, -100
		if hook&(input|postrouting) != 0 {
			priority = 100
		}
	}
	return string(c.kind) == kind && hooks&hook != 0 && c.priority == priority
}
