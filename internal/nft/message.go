// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package nft asks nf_tables questions over netlink: does a table or a chain exist, how many rules are there, could
// iptables-nft add rules. Messages are those of netlink(7), linux/netfilter/nfnetlink.h and
// linux/netfilter/nf_tables.h, in the byte order of the machine. The package changes nothing.
package nft

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// errShort means that a message is cut off.
var errShort = errors.New("netlink message is cut off")

// Message is a message without its header.
type Message struct {
	Kind  uint16
	Flags uint16
	Seq   uint32
	Body  []byte // a part of the buffer into which it was read
}

// align4 rounds up to NLMSG_ALIGNTO and NLA_ALIGNTO, which are both 4.
func align4(n int) int { return (n + 3) &^ 3 }

// next returns the first message of b, and the rest of b. The padding after the last message may be missing.
//
//	struct nlmsghdr {
//		__u32 nlmsg_len;    // with this header, without padding
//		__u16 nlmsg_type;
//		__u16 nlmsg_flags;
//		__u32 nlmsg_seq;
//		__u32 nlmsg_pid;
//	};
func next(b []byte) (m Message, rest []byte, err error) {
	if len(b) < unix.SizeofNlMsghdr {
		return Message{}, nil, errShort
	}
	size := binary.NativeEndian.Uint32(b)
	if size < unix.SizeofNlMsghdr || uint64(size) > uint64(len(b)) {
		return Message{}, nil, errShort
	}
	m = Message{
		Kind:  binary.NativeEndian.Uint16(b[4:]),
		Flags: binary.NativeEndian.Uint16(b[6:]),
		Seq:   binary.NativeEndian.Uint32(b[8:]),
		Body:  b[unix.SizeofNlMsghdr:size],
	}
	return m, b[min(align4(int(size)), len(b)):], nil
}

// walk calls take with the messages of a datagram, until take is done or fails.
func walk(datagram []byte, take func(Message) (done bool, err error)) (done bool, err error) {
	for len(datagram) > 0 && !done && err == nil {
		var m Message
		m, datagram, err = next(datagram)
		if err == nil {
			done, err = take(m)
		}
	}
	return done, err
}

// errno decodes the start of NLMSG_ERROR and NLMSG_DONE: a negative errno, or 0. In NLMSG_DONE, it is the result of the
// dump, 0 or more if the dump succeeded.
//
//	struct nlmsgerr {
//		int             error;
//		struct nlmsghdr msg;
//	};
func (m Message) errno() unix.Errno {
	if len(m.Body) < 4 {
		return unix.EBADMSG
	}
	return unix.Errno(-min(0, int32(binary.NativeEndian.Uint32(m.Body))))
}

const sizeofNfgenmsg = 4

// Attributes returns the attributes of a message of nfnetlink, whose body begins with
//
//	struct nfgenmsg {
//		__u8   nfgen_family;
//		__u8   version;
//		__be16 res_id;
//	};
func (m Message) Attributes() Attributes { return m.Body[min(sizeofNfgenmsg, len(m.Body)):] }

// whole returns an error unless all attributes of a message of nfnetlink are complete.
func (m Message) whole() error {
	if len(m.Body) < sizeofNfgenmsg {
		return errShort
	}
	for b := m.Attributes(); len(b) > 0; {
		value, rest := b.Next()
		if value == nil {
			return errShort
		}
		b = rest
	}
	return nil
}

// Family returns nfgen_family, such as unix.NFPROTO_IPV4. The message must have passed whole.
func (m Message) Family() uint8 { return m.Body[0] }

// Table returns the name of a table as nft prints it: "ip filter". kind is that of the attribute with the table's name.
func (m Message) Table(kind uint16) string {
	name := m.Attributes().String(kind)
	switch m.Family() {
	case unix.NFPROTO_IPV4:
		return "ip " + name
	case unix.NFPROTO_IPV6:
		return "ip6 " + name
	case unix.NFPROTO_INET:
		return "inet " + name
	case unix.NFPROTO_ARP:
		return "arp " + name
	case unix.NFPROTO_BRIDGE:
		return "bridge " + name
	}
	return "netdev " + name
}

// request returns a request to nfnetlink. The upper byte of the kind is the subsystem.
func request(kind, flags uint16, seq uint32, family uint8, a Attributes) []byte {
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
