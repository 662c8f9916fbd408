// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// field is an option of iptables, or more than one, each of which a rule has once.
type field uint16

const (
	protocol field = 1 << iota
	input
	output
	source
	destination
	fragment
	sourcePort
	destinationPort
	tcpFlags
	icmpType
	repeatable field = 0 // an option of a match that a rule can have more than once
)

// traits are what iptables-nft lists of a comparison with a field.
type traits struct {
	field
	orders bool // less and greater, too
	masks  bool // of a part of the bits, too
}

// compare compares a register with a value.
func (r *reader) compare(o operand, operator uint32, value []byte) {
	r.condition()
	is, how := r.traits(o)
	r.note(how)
	if is.field == protocol && len(value) > 0 {
		r.protocol = value[0]
	}
	if how != faithful {
		return
	}
	equal := operator == unix.NFT_CMP_EQ
	inverted := operator == unix.NFT_CMP_NEQ
	lower := operator == unix.NFT_CMP_GT || operator == unix.NFT_CMP_GTE
	switch {
	case is.field == tcpFlags && o.mask == nil:
		r.note(unreadable) // iptables-nft 1.8.9 to 1.8.13 crash
	case !equal && !inverted && !is.orders,
		inverted && (is.field == icmpType || is.field == sourcePort|destinationPort),
		is.field == fragment && (!bytes.Equal(o.mask, []byte{0x1f, 0xff}) || !zero(value)),
		o.mask != nil && !is.masks,
		o.altered:
		r.note(altered)
	}
	r.bound(is.field, equal || inverted || lower, equal || inverted || !lower)
}

// bound notes which bounds of a field a comparison sets. iptables-nft lists only the last one that was set.
func (r *reader) bound(f field, low, high bool) {
	if low && r.low&f != 0 || high && r.high&f != 0 {
		r.note(altered)
	}
	if low {
		r.low |= f
	}
	if high {
		r.high |= f
	}
}

// inRange compares a register with two values. iptables-nft expects ports, and reads others as if there were no
// comparison.
func (r *reader) inRange(o operand) {
	r.condition()
	if o.from != fromPayload || o.base != unix.NFT_PAYLOAD_TRANSPORT_HEADER {
		r.note(unreadable)
		return
	}
	is, how := r.transport(o)
	if how != faithful || !is.orders || o.mask != nil {
		r.note(altered)
		return
	}
	r.bound(is.field, true, true)
}

// traits are what iptables-nft lists of comparisons with what a register holds.
func (r *reader) traits(o operand) (traits, listing) {
	switch {
	case o.from == fromMeta:
		return metaTraits(o.key)
	case o.from != fromPayload:
		return traits{}, unreadable
	case o.base == unix.NFT_PAYLOAD_NETWORK_HEADER && r.ipv6:
		return ipv6Traits(o)
	case o.base == unix.NFT_PAYLOAD_NETWORK_HEADER:
		return ipv4Traits(o)
	case o.base == unix.NFT_PAYLOAD_TRANSPORT_HEADER:
		return r.transport(o)
	}
	return traits{}, altered
}

func metaTraits(key uint32) (traits, listing) {
	switch key {
	case unix.NFT_META_L4PROTO:
		return traits{field: protocol}, faithful
	case unix.NFT_META_IIF, unix.NFT_META_IIFNAME:
		return traits{field: input}, faithful
	case unix.NFT_META_OIF, unix.NFT_META_OIFNAME:
		return traits{field: output}, faithful
	case unix.NFT_META_MARK:
		return traits{field: repeatable, masks: true}, faithful
	case unix.NFT_META_PKTTYPE:
		return traits{field: repeatable}, faithful
	}
	return traits{}, unreadable
}

// ipv4Traits looks at a part of struct iphdr. A prefix of whole bytes is a shorter part of an address.
func ipv4Traits(o operand) (traits, listing) {
	const address = 4
	switch {
	case o.offset == 6: // frag_off
		return traits{field: fragment, masks: true}, faithful
	case o.offset == 8 && o.length == 1: // ttl
		return traits{field: repeatable, orders: true}, faithful
	case o.offset == 9 && o.length == 1: // protocol
		return traits{field: protocol}, faithful
	case o.offset == 12 && o.length <= address: // saddr
		return traits{field: source, masks: true}, faithful
	case o.offset == 16 && o.length <= address: // daddr
		return traits{field: destination, masks: true}, faithful
	case o.offset == 8, o.offset == 9, o.offset == 12, o.offset == 16:
		return traits{}, altered
	}
	return traits{}, unreadable
}

// ipv6Traits looks at a part of struct ip6_hdr. iptables-nft reads a comparison of the next header as one of the hop
// limit, too.
func ipv6Traits(o operand) (traits, listing) {
	const address = 16
	switch {
	case o.offset == 7 && o.length == 1: // ip6_hlim
		return traits{field: repeatable, orders: true}, faithful
	case o.offset == 8 && o.length <= address: // ip6_src
		return traits{field: source, masks: true}, faithful
	case o.offset == 24 && o.length <= address: // ip6_dst
		return traits{field: destination, masks: true}, faithful
	case o.offset == 6: // ip6_nxt
		return traits{field: protocol}, altered
	case o.offset == 7, o.offset == 8, o.offset == 24:
		return traits{}, altered
	}
	return traits{}, unreadable
}

// transport looks at a part of the header of the protocol that was compared before.
func (r *reader) transport(o operand) (traits, listing) {
	switch r.protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
		switch {
		case o.offset == 0 && o.length == 2:
			return traits{field: sourcePort, orders: true}, faithful
		case o.offset == 0 && o.length == 4:
			return traits{field: sourcePort | destinationPort}, faithful
		case o.offset == 2 && o.length == 2:
			return traits{field: destinationPort, orders: true}, faithful
		case o.offset == 13 && o.length == 1 && r.protocol == unix.IPPROTO_TCP:
			return traits{field: tcpFlags, masks: true}, faithful
		}
		return traits{}, altered
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		other := r.ipv6 != (r.protocol == unix.IPPROTO_ICMPV6)
		switch {
		case o.offset == 0 && o.length <= 2 && !other:
			return traits{field: icmpType}, faithful
		case o.offset == 0, o.offset == 1 && !r.ipv6:
			return traits{}, altered
		}
	}
	return traits{}, unreadable
}
