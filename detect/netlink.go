//go:build linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Netlink messages in the byte order of the machine, as netlink(7) and linux/netfilter/nfnetlink.h define them. No I/O.

var (
	errShortMessage   = errors.New("netlink: message is cut off")
	errMessageLength  = errors.New("netlink: message length is wrong")
	errShortAttribute = errors.New("netlink: attribute is cut off")
	errWrongObject    = errors.New("netlink: the answer is about something else")
)

// message is one netlink message. body is what follows the header, a part of the buffer it was read from.
type message struct {
	kind  uint16
	flags uint16
	seq   uint32
	body  []byte
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
	if size < unix.SizeofNlMsghdr {
		return message{}, nil, errMessageLength
	}
	if uint64(size) > uint64(len(b)) {
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
func (m message) errno() (unix.Errno, error) {
	if len(m.body) < 4 {
		if m.kind == unix.NLMSG_DONE {
			return 0, nil
		}
		return 0, errShortMessage
	}
	if code := int32(binary.NativeEndian.Uint32(m.body)); code < 0 {
		return unix.Errno(-code), nil
	}
	return 0, nil
}

// attribute finds the first attribute of the kind in the body of an nf_tables message. It returns a part of the body,
// nil if there is no such attribute.
//
//	struct nfgenmsg {
//		__u8   nfgen_family;
//		__u8   version;
//		__be16 res_id;
//	};
//	struct nlattr {
//		__u16 nla_len;      // with this header, without padding
//		__u16 nla_type;     // the two highest bits are NLA_F_NESTED and NLA_F_NET_BYTEORDER
//	};
func (m message) attribute(kind uint16) ([]byte, error) {
	if len(m.body) < sizeofNfgenmsg {
		return nil, errShortMessage
	}
	for b := m.body[sizeofNfgenmsg:]; len(b) > 0; {
		if len(b) < unix.SizeofNlAttr {
			return nil, errShortAttribute
		}
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			return nil, errShortAttribute
		}
		if binary.NativeEndian.Uint16(b[2:])&^uint16(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == kind {
			return b[unix.SizeofNlAttr:size], nil
		}
		b = b[min(align4(size), len(b)):]
	}
	return nil, nil
}

const sizeofNfgenmsg = 4

// is checks that the message is about this family and has this string in the attribute.
func (m message) is(family uint8, kind uint16, want string) error {
	value, err := m.attribute(kind)
	if err != nil {
		return err
	}
	if m.body[0] != family || string(cString(value)) != want {
		return errWrongObject
	}
	return nil
}

// cString returns the bytes before the first NUL, all of them where there is none.
func cString(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// nftRequest builds a request of nf_tables.
func nftRequest(kind, flags uint16, seq uint32, family uint8, attributes ...nftAttribute) []byte {
	return request(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, seq, family, attributes...)
}

// request builds a request of any part of nfnetlink.
func request(kind, flags uint16, seq uint32, family uint8, attributes ...nftAttribute) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+sizeofNfgenmsg, 128)
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	binary.NativeEndian.PutUint32(b[8:], seq)
	b[unix.SizeofNlMsghdr] = family
	b[unix.SizeofNlMsghdr+1] = unix.NFNETLINK_V0
	for _, a := range attributes {
		value := a.value
		if !a.number {
			value += "\x00"
		}
		b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(value)))
		b = binary.NativeEndian.AppendUint16(b, a.kind)
		b = append(b, value...)
		b = append(b, make([]byte, align4(len(b))-len(b))...) // the padding
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

// nftAttribute is a string attribute, NLA_NUL_STRING in the kernel's policy, or a number, whose bytes are the value.
type nftAttribute struct {
	kind   uint16
	value  string
	number bool
}

// dump is the state of an answer while its messages come in, for one question.
type dump struct {
	seq         uint32
	kind        uint16 // of the messages that are the answer
	each        func(message) error
	done        bool       // the last message has come
	errno       unix.Errno // the kernel's refusal, 0 for none
	interrupted bool       // what was dumped changed meanwhile: the answer is worth nothing
}

// take reads one datagram. Messages that answer an earlier question are passed over.
func (d *dump) take(datagram []byte) error {
	for b := datagram; len(b) > 0 && !d.done; {
		m, rest, err := nextMessage(b)
		if err != nil {
			return err
		}
		b = rest
		if m.seq != d.seq {
			continue
		}
		if m.flags&unix.NLM_F_DUMP_INTR != 0 {
			d.interrupted = true
		}
		switch m.kind {
		case unix.NLMSG_ERROR, unix.NLMSG_DONE:
			d.done = true
			if d.errno, err = m.errno(); err != nil {
				return err
			}
		case unix.NLMSG_OVERRUN:
			return fmt.Errorf("netlink: %w", unix.EOVERFLOW)
		case d.kind:
			if !d.interrupted {
				if err := d.each(m); err != nil {
					return err
				}
			}
			// Without NLM_F_MULTI the answer is one message, and nothing follows it.
			d.done = m.flags&unix.NLM_F_MULTI == 0
		}
	}
	return nil
}
