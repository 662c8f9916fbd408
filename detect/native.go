// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"cmp"
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// expressions says what the expressions of a rule tell about who made it.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_RULE_EXPRESSIONS   nested: a row of NFTA_LIST_ELEM, each nested:
//		NFTA_EXPR_NAME  string
//		NFTA_EXPR_DATA  nested, as the name has it
//
// iptables-nft prints nothing of a table in which one rule has an expression that it does not use itself: nftOnly. A match or
// target of x_tables, xt, is something that nft cannot make. A rule that was made with nft, and has only such expressions as
// iptables-nft uses too, cannot be told apart: it is printed as iptables would have made it, or nearly so, and counts.
func (m message) expressions() (xt, nftOnly bool, err error) {
	list, err := m.attribute(unix.NFTA_RULE_EXPRESSIONS)
	for b := attributes(list); err == nil && len(b) > 0; {
		var element attributes
		if element, b, err = b.next(); err != nil {
			break
		}
		name, nameErr := element.find(unix.NFTA_EXPR_NAME)
		data, dataErr := element.find(unix.NFTA_EXPR_DATA)
		used, usedErr := usedByIptables(cString(name), data)
		if err = cmp.Or(nameErr, dataErr, usedErr); err == nil {
			xt = xt || string(cString(name)) == "match" || string(cString(name)) == "target"
			nftOnly = nftOnly || !used
		}
	}
	if err != nil {
		return false, false, err
	}
	return xt, nftOnly, nil
}

// next returns the value of the first attribute, whatever its kind, and the attributes after it. b is not empty.
func (b attributes) next() (value, rest attributes, err error) {
	if len(b) < unix.SizeofNlAttr {
		return nil, nil, errShortAttribute
	}
	size := int(binary.NativeEndian.Uint16(b))
	if size < unix.SizeofNlAttr || size > len(b) {
		return nil, nil, errShortAttribute
	}
	return b[unix.SizeofNlAttr:size], b[min(align4(size), len(b)):], nil
}

// usedByIptables reports whether iptables-nft makes rules with such an expression. Matches and targets that it does not
// translate are "match" and "target". A limit is one of packets per time, and not of what exceeds it; a log is that of
// NFLOG, which has a group:
//
//	NFTA_LIMIT_TYPE   __be32: NFT_LIMIT_PKTS 0, NFT_LIMIT_PKT_BYTES 1
//	NFTA_LIMIT_FLAGS  __be32: NFT_LIMIT_F_INV 1
//	NFTA_LOG_GROUP    __be16
//
// Kernels before 4.3 send neither a limit's type nor its flags, because they have no other.
func usedByIptables(name []byte, data attributes) (bool, error) {
	switch string(name) {
	case "match", "target", "payload", "meta", "cmp", "bitwise", "counter", "immediate", "lookup", "range":
		return true, nil
	case "limit":
		kind, kindErr := data.find(unix.NFTA_LIMIT_TYPE)
		flags, flagsErr := data.find(unix.NFTA_LIMIT_FLAGS)
		return strings.Trim(string(kind)+string(flags), "\x00") == "", cmp.Or(kindErr, flagsErr)
	case "log":
		group, err := data.find(unix.NFTA_LOG_GROUP)
		return group != nil, err
	default:
		return false, nil
	}
}
