// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// nftMessage builds a message as the kernel would.
func nftMessage(message, flags uint16, seq uint32, family uint8, a Attributes) []byte {
	b := request(unix.NFNL_SUBSYS_NFTABLES<<8|message, flags, seq, family, a)
	binary.NativeEndian.PutUint16(b[6:], flags)
	return b
}

func ofTable(table string) Attributes {
	return Attributes{}.Text(unix.NFTA_RULE_TABLE, table)
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
		done     bool
		want     reply // errno, changed
		rules    int
		err      error
	}{
		{"nothing", nil, false, reply{}, 0, nil},
		{"the end", [][]byte{control(unix.NLMSG_DONE, multi, 7, 0)}, true, reply{}, 0, nil},
		{"two rules and the end", [][]byte{rule(multi, 7), rule(multi, 7), control(unix.NLMSG_DONE, multi, 7, 0)},
			true, reply{}, 2, nil},
		{"two rules, more to come", [][]byte{rule(multi, 7), rule(multi, 7)}, false, reply{}, 2, nil},
		{"one answer, not a dump", [][]byte{rule(0, 7)}, true, reply{}, 1, nil},
		{"an older question's rest", [][]byte{rule(multi, 6), control(unix.NLMSG_DONE, multi, 6, 0), rule(multi, 7)},
			false, reply{}, 1, nil},
		{"after the end", [][]byte{control(unix.NLMSG_DONE, multi, 7, 0), rule(multi, 7)}, true, reply{}, 0, nil},
		{"interrupted", [][]byte{rule(multi, 7), rule(multi|unix.NLM_F_DUMP_INTR, 7), rule(multi, 7)},
			false, reply{changed: true}, 3, nil},
		{"interrupted at its end", [][]byte{rule(multi, 7),
			control(unix.NLMSG_DONE, multi|unix.NLM_F_DUMP_INTR, 7, 0)}, true, reply{changed: true}, 1, nil},
		{"not allowed", [][]byte{control(unix.NLMSG_ERROR, 0, 7, -int32(unix.EPERM))},
			true, reply{errno: unix.EPERM}, 0, nil},
		{"no such thing", [][]byte{control(unix.NLMSG_ERROR, 0, 7, -int32(unix.ENOENT))},
			true, reply{errno: unix.ENOENT}, 0, nil},
		{"acknowledged", [][]byte{control(unix.NLMSG_ERROR, 0, 7, 0)}, true, reply{}, 0, nil},
		{"done with an error", [][]byte{control(unix.NLMSG_DONE, multi, 7, -int32(unix.EINTR))},
			true, reply{errno: unix.EINTR}, 0, nil},
		{"done with a number", [][]byte{control(unix.NLMSG_DONE, multi, 7, 1)}, true, reply{}, 0, nil},
		{"done without a status", [][]byte{withLength(cut(control(unix.NLMSG_DONE, multi, 7, 0), 4), 16)},
			true, reply{errno: unix.EBADMSG}, 0, nil},
		{"error without a code", [][]byte{withLength(cut(control(unix.NLMSG_ERROR, 0, 7, 0), 4), 16)},
			true, reply{errno: unix.EBADMSG}, 0, nil},
		{"noop", [][]byte{control(unix.NLMSG_NOOP, 0, 7, 0), rule(multi, 7)}, false, reply{}, 1, nil},
		{"padding between two", [][]byte{withLength(rule(multi, 7), uint32(len(rule(multi, 7))-1)), rule(multi, 7)},
			false, reply{}, 2, nil},
		{"padding missing at the end", [][]byte{withLength(cut(rule(multi, 7), 1), uint32(len(rule(multi, 7))-1))},
			false, reply{}, 1, nil},
		{"length 0", [][]byte{withLength(rule(multi, 7), 0)}, false, reply{}, 0, errShort},
		{"length 15", [][]byte{withLength(rule(multi, 7), 15)}, false, reply{}, 0, errShort},
		{"length beyond the datagram", [][]byte{withLength(rule(multi, 7), 999)}, false, reply{}, 0, errShort},
		{"length beyond 2 GiB", [][]byte{withLength(rule(multi, 7), 0xffffffff)}, false, reply{}, 0, errShort},
		{"no family", [][]byte{withLength(rule(multi, 7), 18)}, false, reply{}, 0, errShort},
	} {
		rules := 0
		r := reply{seq: 7, kind: kind, each: func(Message) error {
			rules++
			return nil
		}}
		done, err := walk(bytes.Join(test.datagram, nil), r.take)
		if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: got error %v, want %v", test.doc, err, test.err)
		}
		if done != test.done || r.errno != test.want.errno || r.changed != test.want.changed ||
			rules != test.rules {
			t.Errorf("%s: got done %v, errno %v, changed %v, %d rules, want %v, %v, %v, %d", test.doc,
				done, r.errno, r.changed, rules,
				test.done, test.want.errno, test.want.changed, test.rules)
		}
	}
}

// A dump during which something changed may be incomplete; a refusal is a refusal all the same.
func TestReplyErr(t *testing.T) {
	for _, test := range []struct {
		r    reply
		want error
	}{
		{reply{}, nil},
		{reply{changed: true}, iptables.ErrChanged},
		{reply{errno: unix.EINTR}, iptables.ErrChanged},
		{reply{errno: unix.EINVAL}, refused(unix.EINVAL)},
		{reply{errno: unix.EAFNOSUPPORT}, refused(unix.ENOENT)},
		{reply{errno: unix.ENOENT, changed: true}, refused(unix.ENOENT)},
		{reply{errno: unix.EPERM}, refused(unix.EPERM)},
	} {
		err := test.r.err()
		if err != test.want {
			t.Errorf("errno %d, changed %v: got %v, want %v", test.r.errno, test.r.changed, err, test.want)
		}
	}
}

// within says that part is a piece of whole, not a copy.
func within(part, whole []byte) bool {
	if len(part) == 0 {
		return true
	}
	start := uintptr(unsafe.Pointer(&part[:1][0])) - uintptr(unsafe.Pointer(&whole[:1][0]))
	return start <= uintptr(len(whole)-len(part))
}

// FuzzReply feeds the parser anything as an answer. It must end, and hand out only pieces of what it was given.
func FuzzReply(f *testing.F) {
	for _, c := range host.Captures(f, "testdata/nft-*.txtar") {
		f.Add(c.Answer, uint32(1))
	}
	f.Add(bytes.Join([][]byte{rule(unix.NLM_F_MULTI, 7), control(unix.NLMSG_DONE, unix.NLM_F_MULTI, 7, 0)}, nil),
		uint32(7))
	f.Fuzz(func(t *testing.T, datagram []byte, seq uint32) {
		messages := 0
		r := reply{seq: seq, kind: kind, each: func(m Message) error {
			messages++
			for _, part := range [][]byte{m.Body, m.Attributes().Find(unix.NFTA_RULE_TABLE)} {
				if !within(part, datagram) {
					t.Fatal("the parser made something up")
				}
			}
			return nil
		}}
		_, _ = walk(datagram, r.take)
		if messages > len(datagram)/unix.SizeofNlMsghdr {
			t.Fatalf("%d messages in %d bytes", messages, len(datagram))
		}
	})
}

// Answers of real kernels are read, and cut anywhere they are not read as a whole.
func TestCaptures(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("captured on a little-endian machine; the other tests build what they read in this one's order")
	}
	for _, c := range host.Captures(t, "testdata/nft-*.txtar") {
		name, kinds := uint16(unix.NFTA_RULE_TABLE), uint16(kind)
		if c.Question[1] == "chain" {
			name, kinds = unix.NFTA_CHAIN_NAME, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWCHAIN
		}
		read := func(answer []byte) (result string, whole bool) {
			objects := 0
			r := reply{seq: 1, kind: kinds, each: func(m Message) error {
				objects++
				text := m.Attributes().String(name)
				if (m.Family() == unix.NFPROTO_IPV6) != (c.Question[2] == "ipv6") || text != c.Question[3] {
					t.Errorf("%s: it is about something else: %q", c.File, m.Body)
				}
				return nil
			}}
			done, err := walk(answer, r.take)
			if r.errno != 0 {
				return "errno " + unix.ErrnoName(r.errno) + "\n", done && err == nil
			}
			return fmt.Sprintf("%d found\n", objects), done && err == nil
		}
		words, whole := read(c.Answer)
		if words != c.Want || !whole {
			t.Errorf("%s: got %q, whole %v, want %q", c.File, words, whole, c.Want)
		}
		for i := range c.Answer {
			words, whole := read(c.Answer[:i])
			if whole {
				t.Errorf("%s: cut at %d of %d bytes: got %q", c.File, i, len(c.Answer), words)
			}
		}
	}
}

// Only the kernel's replies are read, no matter who else sends something to the socket.
func TestForgedReply(t *testing.T) {
	host.Netns(t)
	ask := func(c *Conn) error {
		which := Attributes{}.Text(unix.NFTA_CHAIN_TABLE, "mangle").Text(unix.NFTA_CHAIN_NAME, "NONE")
		return c.ask(unix.NFT_MSG_GETCHAIN, 0, unix.NFPROTO_IPV4, which, func(Message) error { return nil })
	}
	var c, other Conn
	for _, c := range []*Conn{&c, &other} {
		defer c.Close()
		err := ask(c) // which binds the socket
		if err != refused(unix.ENOENT) {
			t.Fatal(err)
		}
	}
	address, err := unix.Getsockname(c.fd)
	host.Check(t, err)
	forged := control(unix.NLMSG_ERROR, 0, c.seq+1, -int32(unix.EPERM))
	host.Check(t, unix.Sendto(other.fd, forged, 0, address))
	err = ask(&c)
	if err != refused(unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	host.Check(t, unix.Sendto(other.fd, make([]byte, 2*bufferSize), 0, address))
	err = ask(&c)
	if err != refused(unix.ENOENT) {
		t.Errorf("more than fits: got %v", err)
	}
}

// A reply that does not fit is not read.
func TestReplyTooLarge(t *testing.T) {
	host.Netns(t)
	c := Conn{buf: make([]byte, 32)}
	defer c.Close()
	present, err := c.Present()
	if present || !errors.Is(err, errShort) {
		t.Errorf("got %v, %v", present, err)
	}
}
