// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// FuzzEntries feeds the parser anything as a table. It must end, find only names that are pieces of the table, and give
// nothing beside an error.
func FuzzEntries(f *testing.F) {
	for _, l := range layouts[:2] {
		h, b := l.table(40, []int{0, 2, 0}, map[string]int{hint: 0, "A": 2})
		f.Add(b, l.ipv6, h.chains, h.entries)
	}
	for _, c := range host.Captures(f, "testdata/legacy-*.txtar") {
		h, err := parseHeader(c.Header)
		host.Check(f, err)
		f.Add(c.Answer, c.Question[1] == "ipv6", h.chains, h.entries)
	}
	f.Fuzz(func(t *testing.T, b []byte, ipv6 bool, chains, entries int) {
		const align = 8
		h := header{chains: chains, entries: entries, size: uint32(len(b))}
		got, err := parseEntries(ipv6, align, h, b, every)
		if err != nil {
			if got.Chains != nil || got.Rules != 0 || got.Whole {
				t.Fatalf("got %+v beside error %v", got, err)
			}
			return
		}
		_, size := entryLayout(ipv6, align)
		if got.Rules < 0 || entries > len(b)/(size+sizeofTarget) {
			t.Fatalf("%d rules, %d entries in %d bytes", got.Rules, entries, len(b))
		}
		for _, name := range got.Chains {
			if !bytes.Contains(b, []byte(name)) || strings.Contains(name, "\x00") {
				t.Fatalf("chain %q", name)
			}
		}
	})
}

// FuzzHeader feeds the parser of a table's header anything: only its length can be wrong.
func FuzzHeader(f *testing.F) {
	for _, c := range host.Captures(f, "testdata/legacy-*.txtar") {
		f.Add(c.Header)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if (err == nil) != (len(b) == sizeofGetInfo) || err != nil && h != (header{}) || h.chains < 0 || h.chains > 32 {
			t.Fatalf("got %+v, %v", h, err)
		}
	})
}

// FuzzTable: what is built into a table is found in it.
func FuzzTable(f *testing.F) {
	f.Add(hint, "A", uint8(0), uint8(3), uint8(0), false)
	f.Add("A", "B", uint8(200), uint8(200), uint8(255), true)
	f.Fuzz(func(t *testing.T, one, two string, builtin, user, matches uint8, ipv6 bool) {
		if one == two || max(len(one), len(two)) > 29 || strings.ContainsRune(one+two, 0) {
			t.Skip("not names of two chains")
		}
		l := layout{ipv6: ipv6, align: 8}
		h, b := l.table(8*int(matches), []int{int(builtin), 0}, map[string]int{one: int(user), two: 0})
		got, err := parseEntries(l.ipv6, l.align, h, b, every)
		names := []string{one, two}
		slices.Sort(names)
		if err != nil || got.Rules != int(builtin)+int(user) || sortedChains(got) != strings.Join(names, " ") {
			t.Fatalf("got %q, %d rules, %v, want %q, %d", sortedChains(got), got.Rules, err, names,
				int(builtin)+int(user))
		}
	})
}
