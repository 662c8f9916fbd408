// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// This file tells what iptables-nft takes for its own in its five tables, and what it cannot print.

type nftChain struct {
	table, name, kind []byte // parts of the message
	base              bool   // it is hooked into the kernel
	hook              uint32
	priority          int32
}

// parseChain decodes NFT_MSG_NEWCHAIN. Only base chains have a type and a hook.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TYPE   string
//	NFTA_CHAIN_HOOK   nested:
//		NFTA_HOOK_HOOKNUM   __be32
//		NFTA_HOOK_PRIORITY  __be32
func parseChain(m netlink.Message) nftChain {
	chain := m.Attributes()
	hook := chain.Find(unix.NFTA_CHAIN_HOOK)
	return nftChain{
		table:    cString(chain.Find(unix.NFTA_CHAIN_TABLE)),
		name:     cString(chain.Find(unix.NFTA_CHAIN_NAME)),
		kind:     cString(chain.Find(unix.NFTA_CHAIN_TYPE)),
		base:     hook != nil,
		hook:     hook.Number(unix.NFTA_HOOK_HOOKNUM),
		priority: int32(hook.Number(unix.NFTA_HOOK_PRIORITY)),
	}
}

// The base chains of iptables are named after their hooks, which are numbered in this order (enum nf_inet_hooks).
var hookNames = [...]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// baseChains returns the base chains that iptables has in one of its five tables, nil for any other table.
func baseChains(table string) []string {
	switch table {
	case "raw":
		return []string{"PREROUTING", "OUTPUT"}
	case mangle:
		return []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}
	case "nat":
		return []string{"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}
	case "filter", "security":
		return []string{"INPUT", "FORWARD", "OUTPUT"}
	}
	return nil
}

// own reports whether iptables-nft takes a base chain of one of its five tables for its own: by name, type, hook and
// priority.
func (c nftChain) own() bool {
	name := string(c.name)
	table := string(c.table)
	kind, priority := "filter", int32(0) // filter
	switch table {
	case "raw":
		priority = -300
	case mangle:
		priority = -150
		if name == "OUTPUT" {
			kind = "route"
		}
	case "security":
		priority = 150 // iptables-nft has always used this; NF_IP_PRI_SECURITY is 50
	case "nat":
		kind, priority = "nat", -100
		if name == "INPUT" || name == "POSTROUTING" {
			priority = 100
		}
	}
	return c.hook < uint32(len(hookNames)) && name == hookNames[c.hook] &&
		slices.Contains(baseChains(table), name) && string(c.kind) == kind && c.priority == priority
}

// parseExpressions finds out who made a rule, by its expressions.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_RULE_EXPRESSIONS   nested: a row of NFTA_LIST_ELEM, each nested:
//		NFTA_EXPR_NAME  string
//		NFTA_EXPR_DATA  nested, as the name has it
//
// foreign: the rule has an expression that iptables-nft never uses. It then prints nothing of the whole table. xt: the
// rule has a match or target of x_tables, which nft cannot make. A rule made with nft that has only expressions that
// iptables-nft uses, too, cannot be told from one of iptables-nft's, which prints it, and counts.
func parseExpressions(m netlink.Message) (xt, foreign bool) {
	for list := m.Attributes().Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var element netlink.Attributes
		element, list = list.Next()
		name := string(cString(element.Find(unix.NFTA_EXPR_NAME)))
		xt = xt || name == "match" || name == "target"
		foreign = foreign || !usedByIptables(name, element.Find(unix.NFTA_EXPR_DATA))
	}
	return xt, foreign
}

// usedByIptables reports whether iptables-nft makes rules with such an expression. Matches and targets that it does not
// translate are "match" and "target". Of limits, it makes packets per time, not inverted. Of logs, it makes NFLOG's,
// which has a group:
//
//	NFTA_LIMIT_TYPE   __be32: NFT_LIMIT_PKTS 0, NFT_LIMIT_PKT_BYTES 1
//	NFTA_LIMIT_FLAGS  __be32: NFT_LIMIT_F_INV 1
//	NFTA_LOG_GROUP    __be16
//
// Kernels before 4.3 send neither a limit's type nor its flags, because they have no other.
func usedByIptables(name string, data netlink.Attributes) bool {
	switch name {
	case "match", "target", "payload", "meta", "cmp", "bitwise", "counter", "immediate", "lookup", "range":
		return true
	case "limit":
		return data.Number(unix.NFTA_LIMIT_TYPE) == unix.NFT_LIMIT_PKTS && data.Number(unix.NFTA_LIMIT_FLAGS) == 0
	case "log":
		return data.Find(unix.NFTA_LOG_GROUP) != nil
	default:
		return false
	}
}
