// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// compat asks nft_compat, as iptables-nft does before it uses an extension: "Extension %s revision %d not supported,
// missing kernel module?" is what that prints when the kernel says no. Unlike a rule, the question turns nothing on.
type compat struct {
	fd  int
	err error // why there is no socket
	seq uint32
}

func newCompat() *compat {
	fd, err := netlink.Open()
	return &compat{fd: fd, err: err}
}

func (c *compat) close() {
	if c.err == nil {
		unix.Close(c.fd)
	}
}

// compatGet is the kind of a question, and of its reply: NFNL_MSG_COMPAT_GET, in linux/netfilter/nf_tables_compat.h,
// is 0.
const compatGet = unix.NFNL_SUBSYS_NFT_COMPAT << 8

// question asks for an extension:
//
//	NFTA_COMPAT_NAME    a string of 32 bytes at most
//	NFTA_COMPAT_REV     __be32
//	NFTA_COMPAT_TYPE    __be32: 1 for a target, 0 for a match
func (s Support) question(seq uint32) []byte {
	target := uint32(0)
	if s.Target {
		target = 1
	}
	return netlink.Request(compatGet, 0, seq, netlink.Family(s.Family == detect.IPv6), netlink.Attributes{}.
		Text(unix.NFTA_COMPAT_NAME, s.Name).BE32(unix.NFTA_COMPAT_REV, 0).BE32(unix.NFTA_COMPAT_TYPE, target))
}

// ask asks whether the kernel has the extension, in any revision.
func (c *compat) ask(s Support) (detect.Answer, error) {
	if c.err != nil {
		return detect.Unknown, c.err
	}
	c.seq++
	m, err := c.exchange(s.question(c.seq))
	if err != nil {
		return detect.Unknown, fmt.Errorf("ask nf_tables for %q: %w", s.Name, err)
	}
	return answer(m)
}

// exchange sends a question and returns the reply, which is one message.
func (c *compat) exchange(question []byte) (netlink.Message, error) {
	err := netlink.Send(c.fd, question)
	if err != nil {
		return netlink.Message{}, err
	}
	buf := make([]byte, 4096)
	for {
		datagram, err := netlink.Receive(c.fd, buf)
		if err != nil {
			return netlink.Message{}, err
		}
		m, _, err := netlink.Next(datagram)
		if err != nil || m.Seq == c.seq {
			return m, err
		}
	}
}

// errNoCompat is where iptables-nft has no matches and targets at all but its own.
var errNoCompat = errors.New("nf_tables cannot use them: this kernel has no nft_compat")

// answer is what a reply says. It names the revision that the kernel has, or is an error.
func answer(m netlink.Message) (detect.Answer, error) {
	if m.Kind == compatGet {
		return detect.Yes, nil
	}
	switch errno := m.Errno(); errno {
	case unix.EPROTONOSUPPORT: // other revisions alone
		return detect.Yes, nil
	case unix.ENOENT:
		return detect.No, nil
	case unix.EINVAL: // nfnetlink_rcv_msg: no such subsystem, and no module brought it
		return detect.Unknown, errNoCompat
	default:
		return detect.Unknown, errno
	}
}
