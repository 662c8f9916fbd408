// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
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
		_ = r.read(datagram, func(m message) error {
			messages++
			c := m.chain()
			m.expressions()
			for _, part := range [][]byte{m.body, m.attribute(unix.NFTA_RULE_TABLE), c.table, c.name, c.kind} {
				if !within(part, datagram) {
					t.Fatal("the parser made something up")
				}
			}
			return nil
		})
		if messages > len(datagram)/unix.SizeofNlMsghdr {
			t.Fatalf("%d messages in %d bytes", messages, len(datagram))
		}
		for b := datagram; len(b) > 0; {
			_, rest, err := nextMessage(b)
			if err != nil {
				if rest != nil {
					t.Fatal("got a rest beside an error")
				}
				break
			}
			if len(rest) >= len(b) {
				t.Fatal("no progress")
			}
			b = rest
		}
	})
}

// FuzzRequest: what is put into a request is found in it.
func FuzzRequest(f *testing.F) {
	f.Add("mangle", HintChain)
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, table, chain string) {
		if len(table)+len(chain) > 1<<10 || bytes.ContainsRune([]byte(table+chain), 0) {
			t.Skip("not a name that is ever asked for")
		}
		b := request(nftKind(unix.NFT_MSG_GETCHAIN), 0, 7, unix.NFPROTO_IPV6,
			attributes(nil).text(unix.NFTA_CHAIN_TABLE, table).text(unix.NFTA_CHAIN_NAME, chain))
		m, rest, err := nextMessage(b)
		if err != nil || len(rest) != 0 || len(b)%4 != 0 {
			t.Fatalf("got rest of %d, error %v, length %d", len(rest), err, len(b))
		}
		if c := m.chain(); m.body[0] != unix.NFPROTO_IPV6 || string(c.table) != table || string(c.name) != chain {
			t.Errorf("got %+v", c)
		}
	})
}
