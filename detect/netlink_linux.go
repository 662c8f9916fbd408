// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Netlink messages in the byte order of the machine, as netlink(7) and linux/netfilter/nfnetlink.h define them. No I/O.

var (
	errShortMessage = errors.New("netlink: message is cut off")
	errInterrupted  = errors.New("it kept changing while it was read")
	errEnough       = errors.New("netlink: the rest need not be read")
	errTooMuch      = errors.New("too much to read")
)

type message struct {
	kind  uint16
	flags uint16
	seq   uint32
	body  []byte // behind the header, a part of the buffer it was read from
}

// align4 rounds up to NLMSG_ALIGNTO and NLA_ALIGNTO, which are both 4.
func align4(n int) int { return (n + 3) &^ 3 }

// nextMessage takes the first message off b. The padding behind the last message may be missing.
//
//	struct nlmsghdr {
//		__u32 nlmsg_len;    // with this header, without padding
//		__u16 nlmsg_type;
//		__u16 nlmsg_flags;
//		__u32 nlmsg_seq;
//		__u32 nlmsg_pid;
//	};
func nextMessage(b []byte) (m message, rest []byte, err error) {
	if len(b) < unix.SizeofNlMsghdr {
		return message{}, nil, errShortMessage
	}
	size := binary.NativeEndian.Uint32(b)
	if size < unix.SizeofNlMsghdr || uint64(size) > uint64(len(b)) {
		return message{}, nil, errShortMessage
	}
	m = message{
		kind:  binary.NativeEndian.Uint16(b[4:]),
		flags: binary.NativeEndian.Uint16(b[6:]),
		seq:   binary.NativeEndian.Uint32(b[8:]),
		body:  b[unix.SizeofNlMsghdr:size],
	}
	return m, b[min(align4(int(size)), len(b)):], nil
}

// errno decodes the start of NLMSG_ERROR and NLMSG_DONE: a negative errno, or 0. For NLMSG_DONE the kernel puts in
// the dump's own result, which may be missing in old kernels and is 0 or more when all went well.
//
//	struct nlmsgerr {
//		int             error;
//		struct nlmsghdr msg;
//	};
func (m message) errno() unix.Errno {
	if len(m.body) < 4 {
		if m.kind == unix.NLMSG_DONE {
			return 0
		}
		return unix.EBADMSG
	}
	return unix.Errno(-min(0, int32(binary.NativeEndian.Uint32(m.body))))
}

const sizeofNfgenmsg = 4

// attribute finds the first attribute of a kind in the body of a message of nfnetlink, which begins with
//
//	struct nfgenmsg {
//		__u8   nfgen_family;
//		__u8   version;
//		__be16 res_id;
//	};
func (m message) attribute(kind uint16) []byte { return attributes(m.body[sizeofNfgenmsg:]).find(kind) }

// whole checks that a message of nfnetlink has nothing but whole attributes.
func (m message) whole() error {
	if len(m.body) < sizeofNfgenmsg {
		return errShortMessage
	}
	for b := attributes(m.body[sizeofNfgenmsg:]); len(b) > 0; {
		value, rest := b.next()
		if value == nil {
			return errShortMessage
		}
		b = rest
	}
	return nil
}

// attributes is a row of attributes, each
//
//	struct nlattr {
//		__u16 nla_len;      // with this header, without padding
//		__u16 nla_type;     // the two highest bits are NLA_F_NESTED and NLA_F_NET_BYTEORDER
//	};
//
// and its value, padded to 4 bytes.
type attributes []byte

// next returns the value of the first attribute, whatever its kind, and the attributes after it, or nothing if it is
// cut off.
func (b attributes) next() (value, rest attributes) {
	if len(b) < unix.SizeofNlAttr {
		return nil, nil
	}
	size := int(binary.NativeEndian.Uint16(b))
	if size < unix.SizeofNlAttr || size > len(b) {
		return nil, nil
	}
	return b[unix.SizeofNlAttr:size], b[min(align4(size), len(b)):]
}

// find returns the value of the first attribute of the kind, a part of b, or nil if there is none.
func (b attributes) find(kind uint16) []byte {
	for len(b) > 0 {
		value, rest := b.next()
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

// number returns an attribute that is a __be32, 0 if it is not there.
func (b attributes) number(kind uint16) uint32 {
	value := b.find(kind)
	if len(value) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(value)
}

func (b attributes) bytes(kind uint16, value []byte) attributes {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, align4(len(value))-len(value))...)
}

func (b attributes) text(kind uint16, s string) attributes {
	return b.bytes(kind, append([]byte(s), 0))
}

func (b attributes) be32(kind uint16, n uint32) attributes {
	return b.bytes(kind, binary.BigEndian.AppendUint32(nil, n))
}

func (b attributes) nest(kind uint16, inner attributes) attributes {
	return b.bytes(kind|unix.NLA_F_NESTED, inner)
}

// cString returns the bytes before the first NUL, all of them where there is none.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

func nftKind(kind uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | kind }

func request(kind, flags uint16, seq uint32, family uint8, a attributes) []byte {
	size := unix.SizeofNlMsghdr + sizeofNfgenmsg
	b := make([]byte, size, size+len(a))
	binary.NativeEndian.PutUint32(b, uint32(size+len(a)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	binary.NativeEndian.PutUint32(b[8:], seq)
	b[unix.SizeofNlMsghdr] = family
	b[unix.SizeofNlMsghdr+1] = unix.NFNETLINK_V0
	return append(b, a...)
}
