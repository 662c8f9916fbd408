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

func TestReadChainsTooLarge(t *testing.T) {
	host.Netns(t)
	restore(t, "iptables", "filter", ":MINE - [0:0]\n"+strings.Repeat("-A MINE -j DROP\n", 100))
	table, err := readChains(false, "filter", 100*112)
	if !errors.Is(err, ErrTooLarge) || table.Chains != nil {
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
