// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// What a rule of nf_tables does, and whether iptables made it. How iptables lists a rule is not worked out here: each
// of its releases does that in another way.

// decoding is a rule of which expressions were decoded.
type decoding struct {
	iptables.Rule
	counter bool
	foreign bool            // it has what iptables never makes
	ports   map[uint32]bool // the registers that hold a port
}

// iptablesMakes are the expressions of which iptables-nft 1.8.7 to 1.8.13 makes its rules.
var iptablesMakes = []string{
	"bitwise", "cmp", "counter", "immediate", "limit", "log", "match", "meta", "payload", "range", "target",
}

// parseRule decodes the expressions of a rule. It is Native without a counter, because iptables gives each rule one.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_RULE_EXPRESSIONS   nested: a row of NFTA_LIST_ELEM, each nested:
//		NFTA_EXPR_NAME  string
//		NFTA_EXPR_DATA  nested, as the name has it
func parseRule(a Attributes) iptables.Rule {
	r := decoding{ports: map[uint32]bool{}}
	for list := a.Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var element Attributes
		element, list = list.Next()
		r.expression(element.String(unix.NFTA_EXPR_NAME), element.Find(unix.NFTA_EXPR_DATA))
	}
	r.Native = !r.counter || r.foreign
	return r.Rule
}

// expression takes the next one.
//
//	NFTA_NAT_TYPE     __be32: NFT_NAT_SNAT 0, NFT_NAT_DNAT 1
//	NFTA_QUEUE_FLAGS  __be16: NFT_QUEUE_FLAG_BYPASS 1
func (r *decoding) expression(name string, data Attributes) {
	r.foreign = r.foreign || !slices.Contains(iptablesMakes, name)
	switch name {
	case "counter":
		r.counter = true
	case "match":
		r.Uses = append(r.Uses, "-m "+data.String(unix.NFTA_MATCH_NAME))
	case "target":
		r.xtTarget(data)
	case "meta":
		delete(r.ports, data.Number(unix.NFTA_META_DREG))
	case "payload":
		r.ports[data.Number(unix.NFTA_PAYLOAD_DREG)] = isPort(data)
	case "cmp":
		isOrdered := data.Number(unix.NFTA_CMP_OP) > unix.NFT_CMP_NEQ
		r.foreign = r.foreign || isOrdered && !r.ports[data.Number(unix.NFTA_CMP_SREG)]
	case "range":
		r.foreign = r.foreign || !r.ports[data.Number(unix.NFTA_RANGE_SREG)]
	case "immediate":
		r.verdict(data.Find(unix.NFTA_IMMEDIATE_DATA).Find(unix.NFTA_DATA_VERDICT))
	case "reject":
		r.Target = "REJECT"
	case "redir":
		r.Target = "REDIRECT"
	case "tproxy":
		r.Target = "TPROXY"
	case "nat":
		if data.Number(unix.NFTA_NAT_TYPE) == unix.NFT_NAT_DNAT {
			r.Target = "DNAT"
		}
	case "queue":
		const flags, bypass = 3, 1 // NFTA_QUEUE_FLAGS, NFT_QUEUE_FLAG_BYPASS
		r.Target = "NFQUEUE"
		value := data.Find(flags)
		r.Bypass = len(value) == 2 && binary.BigEndian.Uint16(value)&bypass != 0
	}
}

// isPort reports whether a payload expression loads a port: the first or the next two bytes behind the IP header.
//
//	NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_OFFSET, NFTA_PAYLOAD_LEN  __be32
func isPort(data Attributes) bool {
	offset := data.Number(unix.NFTA_PAYLOAD_OFFSET)
	return data.Number(unix.NFTA_PAYLOAD_BASE) == unix.NFT_PAYLOAD_TRANSPORT_HEADER &&
		data.Number(unix.NFTA_PAYLOAD_LEN) == 2 && (offset == 0 || offset == 2)
}

// xtTarget decodes a target of x_tables.
//
//	NFTA_TARGET_NAME  string
//	NFTA_TARGET_REV   __be32
//	NFTA_TARGET_INFO  the target's own struct: for NFQUEUE struct xt_NFQ_info_v2 or _v3, see internal/xtables
func (r *decoding) xtTarget(data Attributes) {
	r.Target = data.String(unix.NFTA_TARGET_NAME)
	r.Uses = append(r.Uses, "-j "+r.Target)
	info := data.Find(unix.NFTA_TARGET_INFO)
	hasFlags := r.Target == "NFQUEUE" && data.Number(unix.NFTA_TARGET_REV) >= 2 && len(info) >= 6
	r.Bypass = hasFlags && binary.NativeEndian.Uint16(info[4:])&1 != 0
}

// verdict decodes one.
//
//	NFTA_VERDICT_CODE   __be32
//	NFTA_VERDICT_CHAIN  string
func (r *decoding) verdict(verdict Attributes) {
	const nfDrop, nfAccept, nfQueue = 0, 1, 3 // linux/netfilter.h
	if verdict == nil {
		return
	}
	switch int32(verdict.Number(unix.NFTA_VERDICT_CODE)) {
	case nfDrop:
		r.Target = "DROP"
	case nfAccept:
		r.Target = "ACCEPT"
	case nfQueue:
		r.Target = "QUEUE"
	case unix.NFT_RETURN:
		r.Target = "RETURN"
	case unix.NFT_JUMP, unix.NFT_GOTO:
		r.Target = verdict.String(unix.NFTA_VERDICT_CHAIN)
	}
}
