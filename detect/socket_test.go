// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// nftMessage builds a message as the kernel would.
func nftMessage(kind, flags uint16, seq uint32, family uint8, a netlink.Attributes) []byte {
	b := netlink.Request(nftKind(kind), flags, seq, family, a)
	binary.NativeEndian.PutUint16(b[6:], flags)
	return b
}

func ofTable(table string) netlink.Attributes {
	return netlink.Attributes{}.Text(unix.NFTA_RULE_TABLE, table)
}

// control builds NLMSG_ERROR or NLMSG_DONE with a code.
func control(kind, flags uint16, seq uint32, code int32) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+4)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags)
	binary.NativeEndian.PutUint32(b[8:], seq)
	binary.NativeEndian.PutUint32(b[16:], uint32(code))
	return b
}

func rule(flags uint16, seq uint32) []byte {
	return nftMessage(unix.NFT_MSG_NEWRULE, flags, seq, unix.NFPROTO_IPV4, ofTable("filter"))
}

func cut(b []byte, n int) []byte { return b[:len(b)-n] }

func withLength(b []byte, n uint32) []byte {
	b = bytes.Clone(b)
	binary.NativeEndian.PutUint32(b, n)
	return b
}

func TestReply(t *testing.T) {
	const multi = unix.NLM_F_MULTI
	for _, test := range []struct {
		doc      string
		datagram [][]byte
		want     reply // done, errno, interrupted
		rules    int
		err      error
	}{
		{"nothing", nil, reply{}, 0, nil},
		{"the end", [][]byte{control(unix.NLMSG_DONE, multi, 7, 0)}, reply{done: true}, 0, nil},
		{"two rules and the end", [][]byte{rule(multi, 7), rule(multi, 7), control(unix.NLMSG_DONE, multi, 7, 0)},
			reply{done: true}, 2, nil},
		{"two rules, more to come", [][]byte{rule(multi, 7), rule(multi, 7)}, reply{}, 2, nil},
		{"one answer, not a dump", [][]byte{rule(0, 7)}, reply{done: true}, 1, nil},
		{"an older question's rest", [][]byte{rule(multi, 6), control(unix.NLMSG_DONE, multi, 6, 0), rule(multi, 7)},
			reply{}, 1, nil},
		{"after the end", [][]byte{control(unix.NLMSG_DONE, multi, 7, 0), rule(multi, 7)}, reply{done: true}, 0, nil},
		{"interrupted", [][]byte{rule(multi, 7), rule(multi|unix.NLM_F_DUMP_INTR, 7), rule(multi, 7)},
			reply{interrupted: true}, 3, nil},
		{"interrupted at its end", [][]byte{rule(multi, 7),
			control(unix.NLMSG_DONE, multi|unix.NLM_F_DUMP_INTR, 7, 0)}, reply{done: true, interrupted: true}, 1, nil},
		{"not allowed", [][]byte{control(unix.NLMSG_ERROR, 0, 7, -int32(unix.EPERM))},
			reply{done: true, errno: unix.EPERM}, 0, nil},
		{"no such thing", [][]byte{control(unix.NLMSG_ERROR, 0, 7, -int32(unix.ENOENT))},
			reply{done: true, errno: unix.ENOENT}, 0, nil},
		{"acknowledged", [][]byte{control(unix.NLMSG_ERROR, 0, 7, 0)}, reply{done: true}, 0, nil},
		{"done with an error", [][]byte{control(unix.NLMSG_DONE, multi, 7, -int32(unix.EINTR))},
			reply{done: true, errno: unix.EINTR}, 0, nil},
		{"done without a status", [][]byte{withLength(cut(control(unix.NLMSG_DONE, multi, 7, 0), 4), 16)},
			reply{done: true}, 0, nil},
		{"error without a code", [][]byte{withLength(cut(control(unix.NLMSG_ERROR, 0, 7, 0), 4), 16)},
			reply{done: true, errno: unix.EBADMSG}, 0, nil},
		{"noop", [][]byte{control(unix.NLMSG_NOOP, 0, 7, 0), rule(multi, 7)}, reply{}, 1, nil},
		{"padding missing at the end", [][]byte{withLength(cut(rule(multi, 7), 1), uint32(len(rule(multi, 7))-1))},
			reply{}, 1, nil},
		{"length 0", [][]byte{withLength(rule(multi, 7), 0)}, reply{}, 0, netlink.ErrShort},
		{"length 15", [][]byte{withLength(rule(multi, 7), 15)}, reply{}, 0, netlink.ErrShort},
		{"length beyond the datagram", [][]byte{withLength(rule(multi, 7), 999)}, reply{}, 0, netlink.ErrShort},
		{"length beyond 2 GiB", [][]byte{withLength(rule(multi, 7), 0xffffffff)}, reply{}, 0, netlink.ErrShort},
		{"no family", [][]byte{withLength(rule(multi, 7), 18)}, reply{}, 0, netlink.ErrShort},
	} {
		rules := 0
		r := reply{seq: 7, kind: nftKind(unix.NFT_MSG_NEWRULE)}
		err := r.read(bytes.Join(test.datagram, nil), func(m netlink.Message) error {
			rules++
			return nil
		})
		if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: got error %v, want %v", test.doc, err, test.err)
		}
		if r.done != test.want.done || r.errno != test.want.errno || r.interrupted != test.want.interrupted ||
			rules != test.rules {
			t.Errorf("%s: got done %v, errno %v, interrupted %v, %d rules, want %v, %v, %v, %d", test.doc,
				r.done, r.errno, r.interrupted, rules,
				test.want.done, test.want.errno, test.want.interrupted, test.rules)
		}
	}
}

// What the kernel's errors mean.
func TestReplyErr(t *testing.T) {
	for _, test := range []struct {
		r    reply
		want error
	}{
		{reply{}, nil},
		{reply{interrupted: true}, errInterrupted},
		{reply{errno: unix.EINTR}, errInterrupted},
		{reply{errno: unix.EINVAL}, errNoNFTables},
		{reply{errno: unix.EAFNOSUPPORT}, unix.ENOENT},
		{reply{errno: unix.ENOENT, interrupted: true}, unix.ENOENT},
		{reply{errno: unix.EPERM}, unix.EPERM},
	} {
		if err := test.r.err(); err != test.want {
			t.Errorf("%+v: got %v, want %v", test.r, err, test.want)
		}
	}
}

// Whether nf_tables is there, and whether it makes sense to ask more.
func TestNoteSupport(t *testing.T) {
	for _, test := range []struct {
		errs      []error
		supported Answer
		fatal     error
	}{
		{[]error{nil}, Yes, nil},
		{[]error{unix.ENOENT}, Yes, nil},
		{[]error{errNoNFTables}, No, errNoNFTables},
		{[]error{unix.EPERM}, Unknown, unix.EPERM},
		{[]error{unix.EAGAIN}, Unknown, unix.EAGAIN},
		{[]error{unix.ENOBUFS}, Unknown, nil},
		{[]error{unix.ENOBUFS, unix.ENOENT}, Yes, nil},
		{[]error{unix.ENOENT, errInterrupted}, Yes, nil},
	} {
		var s nftSocket
		for _, err := range test.errs {
			s.noteSupport(err)
		}
		if s.supported != test.supported || s.fatal != test.fatal {
			t.Errorf("%v: got %v, %v, want %v, %v", test.errs, s.supported, s.fatal, test.supported, test.fatal)
		}
	}
}
