// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// within says that part is a piece of whole, not a copy.
func within(part, whole []byte) bool {
	if len(part) == 0 {
		return true
	}
	start := uintptr(unsafe.Pointer(&part[:1][0])) - uintptr(unsafe.Pointer(&whole[:1][0]))
	return start <= uintptr(len(whole)-len(part))
}

// FuzzNetlink feeds the parser anything as an answer. It must end, and hand out only pieces of what it was given.
func FuzzNetlink(f *testing.F) {
	for _, c := range captures(f) {
		if c.header == nil {
			f.Add(c.answer, c.seq)
		}
	}
	f.Add(bytes.Join([][]byte{rule(unix.NLM_F_MULTI, 7), control(unix.NLMSG_DONE, unix.NLM_F_MULTI, 7, 0)}, nil),
		uint32(7))
	for _, list := range expressionLists {
		f.Add(ruleOf(list.expressions...), uint32(7))
	}
	f.Fuzz(func(t *testing.T, datagram []byte, seq uint32) {
		messages := 0
		r := reply{seq: seq, kind: nftKind(unix.NFT_MSG_NEWRULE)}
		_ = r.read(datagram, func(m netlink.Message) error {
			messages++
			c := parseChain(m)
			parseExpressions(m)
			for _, part := range [][]byte{m.Body, m.Attributes().Find(unix.NFTA_RULE_TABLE), c.table, c.name, c.kind} {
				if !within(part, datagram) {
					t.Fatal("the parser made something up")
				}
			}
			return nil
		})
		if messages > len(datagram)/unix.SizeofNlMsghdr {
			t.Fatalf("%d messages in %d bytes", messages, len(datagram))
		}
	})
}
