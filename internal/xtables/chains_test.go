// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each policy, verdict, jump and target is what iptables-legacy has put there.
func TestReadChains(t *testing.T) {
	host.Netns(t)
	const lines = `:INPUT DROP [0:0]
:EMPTY - [0:0]
:MINE - [0:0]
-A INPUT -m comment --comment x -m conntrack --ctstate NEW -j MINE
-A INPUT
-A OUTPUT -g EMPTY
-A MINE -j ACCEPT
-A MINE -j DROP
-A MINE -j RETURN
-A MINE -m comment --comment "-j DROP"
-A MINE -j REJECT
-A MINE -j NFQUEUE
-A MINE -j NFQUEUE --queue-bypass
`
	want := []string{
		"{INPUT true true [{MINE [-m comment -m conntrack] false false} { [] false false}]}",
		"{FORWARD true false []}",
		"{OUTPUT true false [{EMPTY [] false false}]}",
		"{EMPTY false false []}",
		"{MINE false false [{ACCEPT [] false false} {DROP [] false false} {RETURN [] false false} " +
			"{ [-m comment] false false} {REJECT [-j REJECT] false false} {NFQUEUE [-j NFQUEUE] false false} " +
			"{NFQUEUE [-j NFQUEUE] true false}]}",
	}
	for family, ipv6 := range map[string]bool{"iptables": false, "ip6tables": true} {
		restore(t, family, "filter", lines)
		table, err := ReadChains(ipv6, "filter")
		var got []string
		for _, c := range table.Chains {
			got = append(got, fmt.Sprint(c))
		}
		if err != nil || table.Name != "filter" || table.IPv6 != ipv6 || !slices.Equal(got, want) {
			t.Errorf("%s: got %v\n%s\nwant\n%s", family, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestParseChainsMalformed(t *testing.T) {
	l := layouts[0]
	_, size := entryLayout(l.ipv6, l.align)
	const match = 40
	rule := size + match + sizeofTarget + l.align    // what an entry with a match takes
	plain := rule - match                            // and one without
	chain := size + sizeofTarget + errorNameSize + 2 // and the head of a user-defined one
	last := rule + plain + chain + plain + plain     // where the end of that one begins
	verdict := func(end int, value int32) func(*header, []byte) {
		return func(_ *header, b []byte) { binary.NativeEndian.PutUint32(b[end-l.align:], uint32(value)) }
	}
	none := func(*header, []byte) {}
	const whole = "[{INPUT true false [{DROP [-m x] false false}]} {A false false [{MARK [-j MARK] false false}]}]"
	for _, test := range []struct {
		doc   string
		spoil func(*header, []byte)
		want  string // "" for errBadTable
	}{
		{"nothing", none, whole},
		{"a rule outside a chain", func(h *header, _ []byte) { h.valid = 0 }, ""},
		{"a rule that leads into a chain", verdict(rule, int32(rule+plain)), ""},
		{"a chain that ends with a jump", verdict(last, int32(rule+plain+chain)), whole},
		{"a match of no size", func(_ *header, b []byte) { b[size] = 0 }, whole},
		{"a match beyond the target", func(_ *header, b []byte) { b[size] = match + 1 }, whole},
	} {
		h, b := l.table(match, []int{1}, map[string]int{"A": 1})
		h.valid, h.policy[1] = 1<<1, uint32(rule)
		b[size] = match
		b[size+2] = 'x'
		verdict(rule, -1)(&h, b)
		verdict(rule+plain, -2)(&h, b)
		verdict(last, -5)(&h, b)
		test.spoil(&h, b)
		got, err := parseChains(l.ipv6, l.align, h, b)
		if (err == errBadTable) != (test.want == "") || err == nil && fmt.Sprint(got) != test.want {
			t.Errorf("%s: got %v, %v", test.doc, got, err)
		}
	}
}

func TestReadChainsTooLarge(t *testing.T) {
	host.Netns(t)
	restore(t, "iptables", "filter", ":MINE - [0:0]\n"+strings.Repeat("-A MINE -j DROP\n", 100))
	table, err := readChains(false, "filter", 100*112)
	if !errors.Is(err, errTooLarge) || table.Chains != nil {
		t.Errorf("got %d chains, %v", len(table.Chains), err)
	}
}

// Answers of real kernels have as many rules as Read counts, and cut anywhere they are not read.
func TestCapturedChains(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || alignments()[0] != 8 {
		t.Skip("captured on a 64-bit little-endian machine")
	}
	for _, c := range host.Captures(t, "testdata/legacy-*.txtar") {
		ipv6 := c.Question[1] == "ipv6"
		h, err := parseHeader(c.Header)
		host.Check(t, err)
		table, err := parseEntries(ipv6, 8, h, c.Answer, every)
		host.Check(t, err)
		for i := range len(c.Answer) + 1 {
			h.size = uint32(i)
			chains, err := parseChains(ipv6, 8, h, c.Answer[:i])
			rules := 0
			for _, chain := range chains {
				rules += len(chain.Rules)
			}
			if i < len(c.Answer) && err == nil || i == len(c.Answer) && (err != nil || rules != table.Rules) {
				t.Fatalf("%s, %d bytes: %d rules, want %d, %v", c.File, i, rules, table.Rules, err)
			}
		}
	}
}

// FuzzChains reads anything as a table. There are never more rules than entries, and each chain to which a rule leads
// exists.
func FuzzChains(f *testing.F) {
	for _, c := range host.Captures(f, "testdata/legacy-*.txtar") {
		f.Add(c.Answer, c.Header, c.Question[1] == "ipv6")
	}
	f.Fuzz(func(t *testing.T, b, head []byte, ipv6 bool) {
		h, err := parseHeader(head)
		if err != nil {
			t.Skip("no header")
		}
		h.size = uint32(len(b))
		chains, err := parseChains(ipv6, 8, h, b)
		rules := 0
		for _, c := range chains {
			rules += len(c.Rules)
		}
		if err != nil && chains != nil || rules > h.entries {
			t.Fatalf("got %d chains and %d rules of %d entries, %v", len(chains), rules, h.entries, err)
		}
	})
}
