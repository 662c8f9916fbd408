// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzMessages feeds the parser anything as a datagram. It must end, and hand out only pieces of what it was given.
func FuzzMessages(f *testing.F) {
	question := request(kind, 0, 7, unix.NFPROTO_IPV4, Attributes{}.
		Text(unix.NFTA_RULE_TABLE, "filter").
		Nest(unix.NFTA_RULE_EXPRESSIONS, Attributes{}.BE32(unix.NFTA_LIST_ELEM, 1)))
	f.Add(question)
	f.Add(slices.Concat(question, request(unix.NLMSG_DONE, 0, 7, 0, nil)))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		for b := datagram; len(b) > 0; {
			m, rest, err := next(b)
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
			_ = m.errno()
			number := m.Attributes().Number(1)
			if !bytes.Contains(datagram, m.Body) || !bytes.Contains(m.Body, m.Attributes().Find(1)) ||
				number != 0 && len(m.Attributes().Find(1)) != 4 {
				t.Fatal("the parser made something up")
			}
			fuzzAttributes(t, m.Attributes(), m.whole())
		}
	})
}

// fuzzAttributes walks over attributes: either they are whole, or one of them is cut off.
func fuzzAttributes(t *testing.T, b Attributes, whole error) {
	for len(b) > 0 {
		value, rest := b.Next()
		if value == nil {
			break
		}
		if len(rest) >= len(b) || !bytes.Contains(b, value) {
			t.Fatal("no progress, or the parser made something up")
		}
		b = rest
	}
	if whole == nil && len(b) > 0 {
		t.Fatalf("whole, but %q is cut off", b)
	}
}

// FuzzRequest: what is put into a request is found in it.
func FuzzRequest(f *testing.F) {
	f.Add("mangle", "KUBE-IPTABLES-HINT")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, table, chain string) {
		if len(table)+len(chain) > 1<<10 || bytes.ContainsRune([]byte(table+chain), 0) {
			t.Skip("not a name that is ever asked for")
		}
		b := request(kind, 0, 7, unix.NFPROTO_IPV6,
			Attributes{}.Text(unix.NFTA_CHAIN_TABLE, table).Text(unix.NFTA_CHAIN_NAME, chain))
		m, rest, err := next(b)
		if err != nil || len(rest) != 0 || len(b)%4 != 0 || m.whole() != nil {
			t.Fatalf("got rest of %d, error %v, length %d, %v", len(rest), err, len(b), m.whole())
		}
		gotTable, gotChain := m.Attributes().Find(unix.NFTA_CHAIN_TABLE), m.Attributes().Find(unix.NFTA_CHAIN_NAME)
		if m.Body[0] != unix.NFPROTO_IPV6 || string(gotTable) != table+"\x00" || string(gotChain) != chain+"\x00" {
			t.Errorf("got %q, %q", gotTable, gotChain)
		}
	})
}
