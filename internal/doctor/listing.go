// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
)

// listing says what iptables-nft lists of a rule. The worst comes last.
type listing int8

const (
	faithful   listing = iota
	newer              // faithful from 1.8.11 on; before, unreadable
	altered            // without a condition or an effect, or with another one; nothing is said about it
	unreadable         // the listing of the whole table fails
)

// reader follows a rule's expressions as iptables-nft does when it lists the rule. iptables-nft decodes each expression
// on its own, ignores what it does not expect, and fails at what it does not know: so it lists many rules that nft has
// made as if they had no condition. Its versions 1.8.8 to 1.8.13 differ in nothing but what newer stands for.
type reader struct {
	ipv6      bool
	registers map[uint32]operand
	protocol  byte  // the last one that was compared
	low, high field // of which the lower bound was compared, and the upper one
	target    string
	listing   listing
}

// operand is what a register holds.
type operand struct {
	from    origin
	key     uint32 // of meta
	base    uint32 // of a payload, as the next two
	offset  uint32
	length  uint32
	mask    []byte // nil for none
	altered bool   // more was done to it than a mask does
	value   []byte // a constant
}

type origin int8

const (
	fromElsewhere origin = iota
	fromMeta
	fromPayload
	fromConstant
)

// listingOf returns what iptables-nft lists of a rule in one of its tables, and the rule's target: a verdict, a chain,
// a target of x_tables, or the one that does the same as a statement of nft; "" for none.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_RULE_EXPRESSIONS   nested: a row of NFTA_LIST_ELEM, each nested:
//		NFTA_EXPR_NAME  string
//		NFTA_EXPR_DATA  nested, as the name has it
func listingOf(m nft.Message) (how listing, target string) {
	r := reader{ipv6: m.Family() == unix.NFPROTO_IPV6, registers: map[uint32]operand{}}
	for list := m.Attributes().Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var element nft.Attributes
		element, list = list.Next()
		r.expression(element.String(unix.NFTA_EXPR_NAME), element.Find(unix.NFTA_EXPR_DATA))
	}
	return r.listing, r.target
}

func (r *reader) note(how listing) { r.listing = max(r.listing, how) }

// condition notes that there is one. iptables has all conditions of a rule before its target.
func (r *reader) condition() {
	if r.target != "" {
		r.note(altered)
	}
}

// act notes what the rule does. iptables does one thing per rule.
func (r *reader) act(target string) {
	if r.target != "" {
		r.note(altered)
	}
	r.target = target
}

// expression takes the next one. Those that are not named here make iptables-nft refuse the whole table.
//
//	NFTA_LIMIT_TYPE   __be32: NFT_LIMIT_PKTS 0, NFT_LIMIT_PKT_BYTES 1
//	NFTA_LIMIT_FLAGS  __be32: NFT_LIMIT_F_INV 1
//	NFTA_LOG_GROUP    __be16
//	NFTA_NAT_TYPE     __be32
//
// Kernels before 4.3 send neither a limit's type nor its flags, because they have no other.
func (r *reader) expression(name string, data nft.Attributes) {
	switch name {
	case "counter":
	case "match":
		r.condition()
	case "target":
		r.act(data.String(unix.NFTA_TARGET_NAME))
	case "meta":
		r.meta(data)
	case "payload":
		r.payload(data)
	case "immediate":
		r.immediate(data)
	case "bitwise":
		r.bitwise(data)
	case "cmp":
		value := data.Find(unix.NFTA_CMP_DATA).Find(unix.NFTA_DATA_VALUE)
		r.compare(r.registers[data.Number(unix.NFTA_CMP_SREG)], data.Number(unix.NFTA_CMP_OP), value)
	case "range":
		r.inRange(r.registers[data.Number(unix.NFTA_RANGE_SREG)])
	case "lookup": // in a set, which iptables-nft ignores; a map's target, too
		r.condition()
		r.note(altered)
	case "limit":
		r.condition()
		if data.Number(unix.NFTA_LIMIT_TYPE) != unix.NFT_LIMIT_PKTS || data.Number(unix.NFTA_LIMIT_FLAGS) != 0 {
			r.note(unreadable)
		}
	case "log":
		if data.Find(unix.NFTA_LOG_GROUP) == nil {
			r.note(unreadable)
			return
		}
		r.act("NFLOG")
	case "reject":
		r.act("REJECT")
		r.note(unreadable)
	case "redir":
		r.act("REDIRECT")
		r.note(unreadable)
	case "nat":
		r.act("SNAT")
		if data.Number(unix.NFTA_NAT_TYPE) == unix.NFT_NAT_DNAT {
			r.target = "DNAT"
		}
		r.note(unreadable)
	default:
		r.note(unreadable)
	}
}

// meta loads a value of the packet's, or stores one. iptables-nft makes only TRACE of the latter.
func (r *reader) meta(data nft.Attributes) {
	key := data.Number(unix.NFTA_META_KEY)
	if data.Find(unix.NFTA_META_SREG) == nil {
		r.registers[data.Number(unix.NFTA_META_DREG)] = operand{from: fromMeta, key: key}
		return
	}
	value := r.registers[data.Number(unix.NFTA_META_SREG)]
	switch {
	case value.from == fromConstant && key == unix.NFT_META_NFTRACE && !zero(value.value):
		r.act("TRACE")
	case value.from == fromConstant && key == unix.NFT_META_MARK:
		r.act("MARK")
		r.note(newer)
	default:
		r.note(unreadable)
	}
}

// payload loads a part of the packet, or stores one, which iptables-nft takes for nothing.
func (r *reader) payload(data nft.Attributes) {
	if data.Find(unix.NFTA_PAYLOAD_SREG) != nil {
		r.note(altered)
		return
	}
	r.registers[data.Number(unix.NFTA_PAYLOAD_DREG)] = operand{
		from:   fromPayload,
		base:   data.Number(unix.NFTA_PAYLOAD_BASE),
		offset: data.Number(unix.NFTA_PAYLOAD_OFFSET),
		length: data.Number(unix.NFTA_PAYLOAD_LEN),
	}
}

// immediate is a verdict, or loads a constant.
//
//	NFTA_IMMEDIATE_DATA  nested:
//		NFTA_DATA_VALUE    bytes
//		NFTA_DATA_VERDICT  nested: NFTA_VERDICT_CODE __be32, NFTA_VERDICT_CHAIN string
func (r *reader) immediate(data nft.Attributes) {
	verdict := data.Find(unix.NFTA_IMMEDIATE_DATA).Find(unix.NFTA_DATA_VERDICT)
	if verdict == nil {
		value := data.Find(unix.NFTA_IMMEDIATE_DATA).Find(unix.NFTA_DATA_VALUE)
		r.registers[data.Number(unix.NFTA_IMMEDIATE_DREG)] = operand{from: fromConstant, value: value}
		return
	}
	const nfDrop, nfAccept, nftContinue = 0, 1, -1 // linux/netfilter.h, linux/netfilter/nf_tables.h
	switch int32(verdict.Number(unix.NFTA_VERDICT_CODE)) {
	case nfDrop:
		r.act("DROP")
	case nfAccept:
		r.act("ACCEPT")
	case unix.NFT_RETURN:
		r.act("RETURN")
	case unix.NFT_JUMP, unix.NFT_GOTO:
		r.act(verdict.String(unix.NFTA_VERDICT_CHAIN))
	case nftContinue: // on with the next rule, as without a target
	default:
		r.note(altered)
	}
}

// bitwise masks a register. What else it can do, since Linux 5.6 by an attribute that says what, iptables-nft takes for
// a mask.
func (r *reader) bitwise(data nft.Attributes) {
	const operation = 6 // NFTA_BITWISE_OP, __be32: NFT_BITWISE_MASK_XOR 0
	value := r.registers[data.Number(unix.NFTA_BITWISE_SREG)]
	value.altered = value.altered || value.mask != nil || value.from == fromConstant ||
		data.Number(operation) != unix.NFT_BITWISE_BOOL ||
		!zero(data.Find(unix.NFTA_BITWISE_XOR).Find(unix.NFTA_DATA_VALUE))
	value.mask = append([]byte{}, data.Find(unix.NFTA_BITWISE_MASK).Find(unix.NFTA_DATA_VALUE)...)
	r.registers[data.Number(unix.NFTA_BITWISE_DREG)] = value
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
