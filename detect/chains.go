// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// nftTable is what the chains of one of the five tables say about it.
type nftTable struct {
	exists  bool
	foreign []Chain  // base chains that are not iptables' own
	users   []string // chains that are not hooked into the kernel: those that iptables -N creates
}

// tables reads the chains of the family, and says what is in each of the five tables. A table without a chain is empty, so it does
// not exist for iptables.
func (s *nftSocket) tables(f Family) (tables [len(tableNames)]nftTable, err error) {
	err = retryChanged(func() error {
		tables = [len(tableNames)]nftTable{}
		if err := s.warmUp(f); err != nil {
			return err
		}
		for m, err := range s.ask(unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, f.nfproto(), nil) {
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
			} else if !c.base {
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
