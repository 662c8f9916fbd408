// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// netlink asks nft_compat, as iptables-nft does before it uses an extension: "Extension %s revision %d not supported,
// missing kernel module?" is what that prints when the kernel says no. Unlike a rule, the question turns nothing on.
type netlink struct {
	fd  int
	err error // why there is no socket
	seq uint32
}

func newNetlink() *netlink {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	return &netlink{fd: fd, err: err}
}

func (n *netlink) close() {
	if n.err == nil {
		unix.Close(n.fd)
	}
}

// nfnlMsgCompatGet is NFNL_MSG_COMPAT_GET in linux/netfilter/nf_tables_compat.h.
const nfnlMsgCompatGet = 0

// question is a message of nfnetlink, and its three attributes:
//
//	NFTA_COMPAT_NAME    a string of 32 bytes at most
//	NFTA_COMPAT_REV     __be32
//	NFTA_COMPAT_TYPE    __be32: 1 for a target, 0 for a match
type question struct {
	Header         unix.NlMsghdr
	Family         unix.Nfgenmsg
	NameHeader     unix.NlAttr
	Name           [32]byte
	RevisionHeader unix.NlAttr
	Revision       [4]byte
	TypeHeader     unix.NlAttr
	Type           [4]byte
}

func (s Support) question(seq uint32) []byte {
	q := question{
		Header: unix.NlMsghdr{
			Type:  unix.NFNL_SUBSYS_NFT_COMPAT<<8 | nfnlMsgCompatGet,
			Flags: unix.NLM_F_REQUEST,
			Seq:   seq,
		},
		Family:         unix.Nfgenmsg{Nfgen_family: unix.NFPROTO_IPV4, Version: unix.NFNETLINK_V0},
		NameHeader:     unix.NlAttr{Len: unix.SizeofNlAttr + 32, Type: unix.NFTA_COMPAT_NAME},
		RevisionHeader: unix.NlAttr{Len: unix.SizeofNlAttr + 4, Type: unix.NFTA_COMPAT_REV},
		TypeHeader:     unix.NlAttr{Len: unix.SizeofNlAttr + 4, Type: unix.NFTA_COMPAT_TYPE},
	}
	q.Header.Len = uint32(binary.Size(q))
	if s.Family == detect.IPv6 {
		q.Family.Nfgen_family = unix.NFPROTO_IPV6
	}
	copy(q.Name[:], s.Name)
	if s.Target {
		q.Type[3] = 1
	}
	b, _ := binary.Append(nil, binary.NativeEndian, q) // fails only for what has no size
	return b
}

// ask asks whether the kernel has the extension, in any revision.
func (n *netlink) ask(s Support) (detect.Answer, error) {
	if n.err != nil {
		return detect.Unknown, fmt.Errorf("open a netlink socket: %w", n.err)
	}
	n.seq++
	err := unix.Sendto(n.fd, s.question(n.seq), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return detect.Unknown, fmt.Errorf("ask nf_tables for %q: %w", s.Name, err)
	}
	var buf [4096]byte
	for {
		size, from, err := unix.Recvfrom(n.fd, buf[:], unix.MSG_DONTWAIT) // the reply is there when sendto returns
		sender, isNetlink := from.(*unix.SockaddrNetlink)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return detect.Unknown, fmt.Errorf("read the reply of nf_tables: %w", err)
		case isNetlink && sender.Pid == 0 && replies(buf[:size], n.seq): // anything else is not from the kernel
			return answer(buf[:size])
		}
	}
}

// replies reports whether a message is complete, and the reply to a question.
func replies(b []byte, seq uint32) bool {
	return len(b) >= unix.SizeofNlMsghdr+4 && binary.NativeEndian.Uint32(b[8:]) == seq
}

// errNoCompat is where iptables-nft has no matches and targets at all but its own.
var errNoCompat = errors.New("nf_tables cannot use them: this kernel has no nft_compat")

// answer decodes a reply. It names the revision that the kernel has, or is an error:
//
//	struct nlmsghdr {
//		__u32 nlmsg_len;
//		__u16 nlmsg_type;
//		__u16 nlmsg_flags;
//		__u32 nlmsg_seq;
//		__u32 nlmsg_pid;
//	};
//	struct nlmsgerr {
//		int             error;    // negative
//		struct nlmsghdr msg;
//	};
func answer(b []byte) (detect.Answer, error) {
	if binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return detect.Yes, nil
	}
	errno := unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])))
	switch errno {
	case unix.EPROTONOSUPPORT: // other revisions alone
		return detect.Yes, nil
	case unix.ENOENT:
		return detect.No, nil
	case unix.EINVAL: // nfnetlink_rcv_msg: no such subsystem, and no module brought it
		return detect.Unknown, errNoCompat
	}
	return detect.Unknown, errno
}
