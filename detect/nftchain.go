// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import "golang.org/x/sys/unix"

// nftChain is a chain as nf_tables describes it. The names are parts of the message.
type nftChain struct {
	table, name, kind []byte
	base              bool // it is hooked into the kernel
	hook              uint32
	priority          int32
}

// chain decodes NFT_MSG_NEWCHAIN: NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, and for base chains NFTA_CHAIN_TYPE and
// NFTA_CHAIN_HOOK, in which are NFTA_HOOK_HOOKNUM and NFTA_HOOK_PRIORITY.
func (m message) chain() (c nftChain, err error) {
	for _, a := range []struct {
		kind uint16
		to   *[]byte
	}{{unix.NFTA_CHAIN_TABLE, &c.table}, {unix.NFTA_CHAIN_NAME, &c.name}, {unix.NFTA_CHAIN_TYPE, &c.kind}} {
		value, err := m.attribute(a.kind)
		if err != nil {
			return nftChain{}, err
		}
		*a.to = cString(value)
	}
	hook, err := m.attribute(unix.NFTA_CHAIN_HOOK)
	if err != nil || hook == nil {
		return c, err
	}
	priority, err := attributes(hook).number(unix.NFTA_HOOK_PRIORITY)
	if err != nil {
		return nftChain{}, err
	}
	if c.hook, err = attributes(hook).number(unix.NFTA_HOOK_HOOKNUM); err != nil {
		return nftChain{}, err
	}
	c.base, c.priority = true, int32(priority)
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
