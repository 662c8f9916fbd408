// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Attributes is a sequence of attributes, each
//
//	struct nlattr {
//		__u16 nla_len;      // with this header, without padding
//		__u16 nla_type;     // the two highest bits are NLA_F_NESTED and NLA_F_NET_BYTEORDER
//	};
//
// and its value, padded to 4 bytes.
type Attributes []byte

// Next returns the value of the first attribute, whatever its kind, and the attributes after it. It returns nil, nil if
// the attribute is cut off.
func (b Attributes) Next() (value, rest Attributes) {
	if len(b) < unix.SizeofNlAttr {
		return nil, nil
	}
	size := int(binary.NativeEndian.Uint16(b))
	if size < unix.SizeofNlAttr || size > len(b) {
		return nil, nil
	}
	return b[unix.SizeofNlAttr:size], b[min(align4(size), len(b)):]
}

// Find returns the value of the first attribute of the kind, a part of b, or nil if there is none.
func (b Attributes) Find(kind uint16) Attributes {
	for len(b) > 0 {
		value, rest := b.Next()
		if value == nil {
			return nil
		}
		first := binary.NativeEndian.Uint16(b[2:]) &^ uint16(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)
		if first == kind {
			return value
		}
		b = rest
	}
	return nil
}

// Number returns the value of an attribute that is a __be32, 0 if it is missing.
func (b Attributes) Number(kind uint16) uint32 {
	value := b.Find(kind)
	if len(value) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(value)
}

// String returns the value of an attribute that is a string with a NUL at the end, "" if it is missing.
func (b Attributes) String(kind uint16) string {
	text, _, _ := bytes.Cut(b.Find(kind), []byte{0})
	return string(text)
}

// Bytes returns b with one more attribute. So do the following methods.
func (b Attributes) Bytes(kind uint16, value []byte) Attributes {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, align4(len(value))-len(value))...)
}

// Text appends a string with a NUL at the end.
func (b Attributes) Text(kind uint16, s string) Attributes {
	return b.Bytes(kind, append([]byte(s), 0))
}

// BE32 appends a __be32.
func (b Attributes) BE32(kind uint16, n uint32) Attributes {
	return b.Bytes(kind, binary.BigEndian.AppendUint32(nil, n))
}

// Nest appends an attribute whose value is attributes.
func (b Attributes) Nest(kind uint16, inner Attributes) Attributes {
	return b.Bytes(kind|unix.NLA_F_NESTED, inner)
}
