// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// kind is one of nf_tables' messages.
const kind = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE

func TestAttributes(t *testing.T) {
	attr := func(length, kind uint16, value string) []byte {
		b := binary.NativeEndian.AppendUint16(nil, length)
		return append(binary.NativeEndian.AppendUint16(b, kind), value...)
	}
	for _, test := range []struct {
		doc  string
		body [][]byte
		want string
		err  error
	}{
		{"first", [][]byte{attr(7, 1, "nat\x00")}, "nat", nil},
		{"behind one that is padded", [][]byte{attr(5, 9, "x\x00\x00\x00"), attr(8, 1, "nat\x00")}, "nat\x00", nil},
		{"last one not padded", [][]byte{attr(5, 9, "x\x00\x00\x00"), attr(7, 1, "nat")}, "nat", nil},
		{"NUL missing", [][]byte{attr(7, 1, "nat")}, "nat", nil},
		{"nested bit", [][]byte{attr(8, 1|unix.NLA_F_NESTED, "nat\x00")}, "nat\x00", nil},
		{"byte order bit", [][]byte{attr(8, 1|unix.NLA_F_NET_BYTEORDER, "nat\x00")}, "nat\x00", nil},
		{"empty value", [][]byte{attr(4, 1, "")}, "", nil},
		{"not there", [][]byte{attr(8, 2, "nat\x00")}, "", nil},
		{"length 0", [][]byte{attr(0, 2, "nat\x00")}, "", errShort},
		{"length 3", [][]byte{attr(3, 2, "nat\x00")}, "", errShort},
		{"length beyond the rest", [][]byte{attr(9, 1, "nat\x00")}, "", errShort},
		{"half a header", [][]byte{attr(8, 2, "nat\x00"), {1, 0}}, "", errShort},
	} {
		m := Message{Body: bytes.Join(append([][]byte{make([]byte, sizeofNfgenmsg)}, test.body...), nil)}
		got, err := m.Attributes().Find(1), m.whole()
		if string(got) != test.want || err != test.err {
			t.Errorf("%s: got %q, %v, want %q, %v", test.doc, got, err, test.want, test.err)
		}
	}
	for size := range sizeofNfgenmsg {
		m := Message{Body: make([]byte, size)}
		if len(m.Attributes()) != 0 || m.whole() != errShort {
			t.Errorf("%d bytes of the header: got %q, %v", size, m.Attributes(), m.whole())
		}
	}
}
