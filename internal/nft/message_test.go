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

// Cut anywhere, or with a wrong length, it is no message.
func TestNext(t *testing.T) {
	b := request(kind, unix.NLM_F_DUMP, 7, unix.NFPROTO_IPV6, Attributes{}.Text(unix.NFTA_RULE_TABLE, "nat"))
	m, rest, err := next(append(bytes.Clone(b), "rest"...))
	if err != nil || m.Kind != kind || m.Flags != unix.NLM_F_REQUEST|unix.NLM_F_DUMP || m.Seq != 7 ||
		m.Body[0] != unix.NFPROTO_IPV6 || m.whole() != nil || string(rest) != "rest" {
		t.Errorf("got %+v, %v, rest %q, %v", m, m.whole(), rest, err)
	}
	for size := range b {
		_, _, err := next(b[:size])
		if err != ErrShort {
			t.Errorf("cut at %d of %d bytes: got %v", size, len(b), err)
		}
	}
	for _, length := range []uint32{0, unix.SizeofNlMsghdr - 1, uint32(len(b)) + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		wrong := bytes.Clone(b)
		binary.NativeEndian.PutUint32(wrong, length)
		_, _, err := next(wrong)
		if err != ErrShort {
			t.Errorf("length %d: got %v", length, err)
		}
	}
}

// The padding behind the last message may be missing.
func TestPadding(t *testing.T) {
	b := request(kind, 0, 7, unix.NFPROTO_IPV4, Attributes{}.Text(unix.NFTA_RULE_TABLE, "filter")) // padded by 1
	binary.NativeEndian.PutUint32(b, uint32(len(b)-1))
	for missing := range 2 {
		m, rest, err := next(b[:len(b)-missing])
		if err != nil || len(rest) != 0 || len(m.Body) != len(b)-1-unix.SizeofNlMsghdr {
			t.Errorf("%d missing: got %+v, rest %q, %v", missing, m, rest, err)
		}
	}
}

func TestErrno(t *testing.T) {
	for _, test := range []struct {
		kind uint16
		code []int32 // none: it is missing
		want unix.Errno
	}{
		{unix.NLMSG_ERROR, []int32{0}, 0},
		{unix.NLMSG_ERROR, []int32{-int32(unix.EPERM)}, unix.EPERM},
		{unix.NLMSG_ERROR, nil, unix.EBADMSG},
		{unix.NLMSG_DONE, []int32{0}, 0},
		{unix.NLMSG_DONE, []int32{1}, 0},
		{unix.NLMSG_DONE, []int32{-int32(unix.EINTR)}, unix.EINTR},
		{unix.NLMSG_DONE, nil, unix.EBADMSG},
	} {
		body, err := binary.Append(nil, binary.NativeEndian, test.code)
		if err != nil {
			t.Fatal(err)
		}
		got := Message{Kind: test.kind, Body: body}.errno()
		if got != test.want {
			t.Errorf("type %d, %v: got %v, want %v", test.kind, test.code, got, test.want)
		}
	}
}

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
		{"length 0", [][]byte{attr(0, 2, "nat\x00")}, "", ErrShort},
		{"length 3", [][]byte{attr(3, 2, "nat\x00")}, "", ErrShort},
		{"length beyond the rest", [][]byte{attr(9, 1, "nat\x00")}, "", ErrShort},
		{"half a header", [][]byte{attr(8, 2, "nat\x00"), {1, 0}}, "", ErrShort},
	} {
		m := Message{Body: bytes.Join(append([][]byte{make([]byte, sizeofNfgenmsg)}, test.body...), nil)}
		got, err := m.Attributes().Find(1), m.whole()
		if string(got) != test.want || err != test.err {
			t.Errorf("%s: got %q, %v, want %q, %v", test.doc, got, err, test.want, test.err)
		}
	}
	for size := range sizeofNfgenmsg {
		m := Message{Body: make([]byte, size)}
		if len(m.Attributes()) != 0 || m.whole() != ErrShort {
			t.Errorf("%d bytes of the header: got %q, %v", size, m.Attributes(), m.whole())
		}
	}
}
