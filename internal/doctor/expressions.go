// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// likeIPTables reports whether a rule consists of what iptables-nft makes rules of, so that it prints the whole rule:
// conditions, a counter, and at most one action. A condition is an extension of iptables, a limit, or something that is
// loaded and compared once. Of other rules, iptables-nft prints a part, or something else. An iptables-nft that loses
// conditions (install.LosesRules) only prints what it compares in headers. "nft --debug=netlink list ruleset" shows the
// expressions of each rule.
func likeIPTables(rule netlink.Message, loses bool) bool {
	e := expressions{ipv6: len(rule.Body) > 0 && rule.Body[0] == unix.NFPROTO_IPV6, loses: loses}
	for list := rule.Attributes().Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var element netlink.Attributes
		element, list = list.Next()
		name := unix.ByteSliceToString(element.Find(unix.NFTA_EXPR_NAME))
		if e.acted || !e.take(name, element.Find(unix.NFTA_EXPR_DATA)) {
			return false
		}
	}
	// Something that is loaded last is not compared.
	return e.counted && e.pending == nothing
}

// expressions is what the first expressions of a rule did.
type expressions struct {
	ipv6     bool
	loses    bool   // iptables-nft prints no condition of an extension that nf_tables itself compares
	pending  source // loaded, and not compared yet
	mask     []byte // of the pending one, nil for none
	compared []source
	extended bool // there was a condition of an extension
	protocol byte // that the packet has, as far as it was compared
	counted  bool
	acted    bool
}

// source is something that iptables-nft compares. The kernel may have several numbers for it.
type source int

const (
	nothing source = iota
	sourceAddress
	destinationAddress
	transportProtocol
	inputInterface
	outputInterface
	fragmentOffset
	// Those of extensions: "-m tcp", "-m mark".
	sourcePort
	destinationPort
	tcpFlags
	packetMark
)

func (s source) ofExtension() bool { return s >= sourcePort }

// take looks at one more expression, and reports whether iptables-nft puts it there.
func (e *expressions) take(name string, data netlink.Attributes) bool {
	loads := name == "payload" || name == "meta"
	compares := name == "bitwise" || name == "cmp" || name == "range"
	loaded := e.pending != nothing
	if compares != loaded { // what was loaded is compared at once, and nothing else can be
		return false
	}
	switch name {
	case "match":
		e.extended = true
		return true
	case "limit":
		e.extended = true
		return likeLimit(data)
	case "counter":
		e.counted = true
		return true
	case "target", "immediate":
		e.acted = true
		return true
	case "log":
		e.acted = true
		return data.Find(unix.NFTA_LOG_GROUP) != nil // -j NFLOG; without a group it is nft's "log prefix"
	case "bitwise":
		return e.setMask(data)
	case "cmp", "range":
		return e.compare(name, data)
	}
	return loads && e.load(name, data)
}

// load notes what was loaded: neither the same thing twice nor anything that is not in the list. iptables-nft puts and
// prints the conditions of extensions behind all others. The order matters: a limit counts what comes to it.
func (e *expressions) load(name string, data netlink.Attributes) bool {
	e.pending = metaSource(data)
	if name == "payload" {
		e.pending = e.payloadSource(data)
	}
	e.mask = nil
	again := slices.Contains(e.compared, e.pending)
	e.compared = append(e.compared, e.pending)
	early := e.extended && !e.pending.ofExtension()
	lost := e.loses && e.pending.ofExtension()
	e.extended = e.extended || e.pending.ofExtension()
	return e.pending != nothing && !again && !early && !lost
}

// metaSource is what the expression meta loads.
func metaSource(data netlink.Attributes) source {
	switch data.Number(unix.NFTA_META_KEY) {
	case unix.NFT_META_IIFNAME:
		return inputInterface
	case unix.NFT_META_OIFNAME:
		return outputInterface
	case unix.NFT_META_L4PROTO:
		return transportProtocol
	case unix.NFT_META_MARK:
		return packetMark
	}
	return nothing
}

// payloadSource is what the expression payload loads. Of an address, it may be the first bytes, which are a prefix.
func (e *expressions) payloadSource(data netlink.Attributes) source {
	offset, size := data.Number(unix.NFTA_PAYLOAD_OFFSET), data.Number(unix.NFTA_PAYLOAD_LEN)
	switch data.Number(unix.NFTA_PAYLOAD_BASE) {
	case unix.NFT_PAYLOAD_NETWORK_HEADER:
		return e.headerSource(offset, size)
	case unix.NFT_PAYLOAD_TRANSPORT_HEADER:
		return e.transportSource(offset, size)
	}
	return nothing
}

// headerSource knows struct iphdr (include/uapi/linux/ip.h) and struct ipv6hdr (include/uapi/linux/ipv6.h).
func (e *expressions) headerSource(offset, size uint32) source {
	switch {
	case e.ipv6 && offset == 8 && size <= 16, !e.ipv6 && offset == 12 && size <= 4:
		return sourceAddress
	case e.ipv6 && offset == 24 && size <= 16, !e.ipv6 && offset == 16 && size <= 4:
		return destinationAddress
	case !e.ipv6 && offset == 9 && size == 1:
		return transportProtocol
	case !e.ipv6 && offset == 6 && size == 2:
		return fragmentOffset
	}
	return nothing
}

// transportSource knows the ports, which iptables-nft compares itself in TCP and UDP only, and TCP's flags.
func (e *expressions) transportSource(offset, size uint32) source {
	ports := e.protocol == unix.IPPROTO_TCP || e.protocol == unix.IPPROTO_UDP
	switch {
	case ports && offset == 0 && size == 2:
		return sourcePort
	case ports && offset == 2 && size == 2:
		return destinationPort
	case e.protocol == unix.IPPROTO_TCP && offset == 13 && size == 1:
		return tcpFlags
	}
	return nothing
}

// setMask looks at the expression bitwise: a mask, and nothing that changes bits.
func (e *expressions) setMask(data netlink.Attributes) bool {
	const flags = 0x3f // those that --tcp-flags has names for
	mask := data.Find(unix.NFTA_BITWISE_MASK).Find(unix.NFTA_DATA_VALUE)
	inverted := data.Find(unix.NFTA_BITWISE_XOR).Find(unix.NFTA_DATA_VALUE)
	named := e.pending != tcpFlags || within(mask, []byte{flags})
	masked := e.mask != nil
	e.mask = mask
	return !masked && named && len(mask) > 0 && isZero(inverted)
}

func isZero(value []byte) bool {
	return !slices.ContainsFunc(value, func(b byte) bool { return b != 0 })
}

// within reports whether a value has no bit that a mask of its length lacks.
func within(value, mask []byte) bool {
	if len(value) != len(mask) {
		return false
	}
	for i, b := range value {
		if b&^mask[i] != 0 {
			return false
		}
	}
	return true
}

// compare looks at cmp, where only "equal" and "not equal" can be said to iptables except for ports, and at range,
// which is for ports.
func (e *expressions) compare(name string, data netlink.Attributes) bool {
	compared := e.pending
	e.pending = nothing
	masked := e.mask != nil
	port := compared == sourcePort || compared == destinationPort
	if name == "range" {
		return port && !masked && !isWhole(data)
	}
	op := data.Number(unix.NFTA_CMP_OP)
	value := data.Find(unix.NFTA_CMP_DATA).Find(unix.NFTA_DATA_VALUE)
	if port && !masked && isFromZero(op, value) {
		return true
	}
	if op != unix.NFT_CMP_EQ && op != unix.NFT_CMP_NEQ {
		return false
	}
	switch compared {
	case transportProtocol:
		if len(value) == 1 && op == unix.NFT_CMP_EQ {
			e.protocol = value[0]
		}
		// "-p 0" means any protocol, and is not printed.
		return !masked && !isZero(value)
	case inputInterface, outputInterface:
		return !masked && !looksLikePattern(value)
	case sourcePort, destinationPort:
		return !masked
	case fragmentOffset: // "-f", whatever the mask and the value are
		return string(e.mask) == "\x1f\xff" && isZero(value)
	case tcpFlags:
		return masked && within(value, e.mask)
	default: // an address or a mark
		// A value beyond its mask never matches, but iptables takes 10.0.0.1/24 for 10.0.0.0/24.
		return !masked || within(value, e.mask)
	}
}

// isFromZero reports whether a port is compared as by "--dport 0:80", or "! --dport 0:80". iptables prints the latter
// as 81:65535.
func isFromZero(op uint32, port []byte) bool {
	return op == unix.NFT_CMP_LTE || op == unix.NFT_CMP_GT && string(port) != "\xff\xff"
}

// isWhole reports whether a range of ports has all of them: iptables prints "! --dport 0:65535" without that.
func isWhole(data netlink.Attributes) bool {
	from := data.Find(unix.NFTA_RANGE_FROM_DATA).Find(unix.NFTA_DATA_VALUE)
	to := data.Find(unix.NFTA_RANGE_TO_DATA).Find(unix.NFTA_DATA_VALUE)
	return isZero(from) && string(to) == "\xff\xff"
}

// looksLikePattern reports whether a name is compared as a whole, with the NUL at its end, but ends like a pattern:
// iptables takes "eth+" for all names that begin with "eth", which are compared without the NUL.
func looksLikePattern(name []byte) bool {
	whole, _, ends := bytes.Cut(name, []byte{0})
	return ends && bytes.HasSuffix(whole, []byte("+"))
}

// likeLimit reports whether a limit is one of the extension limit, which counts packets, not bytes, and only those
// below the limit. It rounds a rate that does not divide 10,000 packets in its unit, which is a day at most.
func likeLimit(data netlink.Attributes) bool {
	const day, scale = 24 * 60 * 60, 10_000
	rate, unit := number64(data.Find(unix.NFTA_LIMIT_RATE)), number64(data.Find(unix.NFTA_LIMIT_UNIT))
	packets := data.Number(unix.NFTA_LIMIT_TYPE) == unix.NFT_LIMIT_PKTS && data.Number(unix.NFTA_LIMIT_FLAGS) == 0
	if !packets || rate == 0 || unit > day || rate > unit*scale {
		return false
	}
	return unit*scale/(unit*scale/rate) == rate
}

// number64 decodes a __be64, 0 if it is not there.
func number64(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}
