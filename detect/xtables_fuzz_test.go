// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// FuzzXtables feeds the parser anything as a table. It must end, find only names that are pieces of the table, and give
// nothing beside an error.
func FuzzXtables(f *testing.F) {
	for _, family := range []Family{IPv4, IPv6} {
		info, b := buildTable(family, []int{0, 2, 0}, map[string]int{HintChain: 0, "A": 2})
		f.Add(b, family == IPv6, info.chains, info.entries)
	}
	for _, c := range captures(f) {
		if info, err := parseInfo(c.header); err == nil {
			f.Add(c.answer, c.family == string(IPv6), info.chains, info.entries)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, v6 bool, chains, entries int) {
		family := IPv4
		if v6 {
			family = IPv6
		}
		got, err := parseEntries(family, hostAlignment(),
			tableInfo{chains: chains, entries: entries, size: uint32(len(b))}, b)
		if err != nil {
			if got.chains != nil || got.rules != 0 {
				t.Fatalf("got %v beside error %v", got, err)
			}
			return
		}
		if got.rules < 0 || entries > len(b)/(layout(family, hostAlignment()).size+sizeofTarget) {
			t.Fatalf("%d rules, %d entries in %d bytes", got.rules, entries, len(b))
		}
		for _, name := range got.chains {
			if !within(name, b) || bytes.IndexByte(name, 0) >= 0 {
				t.Fatalf("chain %q", name)
			}
		}
	})
}

// FuzzHeader feeds the parser of a table's header anything: what it finds is possible.
func FuzzHeader(f *testing.F) {
	for _, c := range captures(f) {
		if c.header != nil {
			f.Add(c.header)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := parseInfo(b)
		switch bound := info.bound(IPv4); {
		case err != nil && info != (tableInfo{}):
			t.Fatalf("got %v beside error %v", info, err)
		case err == nil && (bound.Min < 0 || bound.Min > bound.Max || bound.Max >= info.entries):
			t.Fatalf("%+v: between %d and %d rules", info, bound.Min, bound.Max)
		}
	})
}

// FuzzTable: what is built into a table is found in it.
func FuzzTable(f *testing.F) {
	f.Add(HintChain, "A", uint8(0), uint8(3), uint8(0), false)
	f.Add("A", "B", uint8(200), uint8(200), uint8(255), true)
	f.Fuzz(func(t *testing.T, one, two string, builtin, user, matches uint8, v6 bool) {
		if one == two || max(len(one), len(two)) > 29 || strings.ContainsRune(one+two, 0) {
			t.Skip("not names of two chains")
		}
		family := IPv4
		if v6 {
			family = IPv6
		}
		info, b := buildTableOf(family, 8*int(matches), []int{int(builtin), 0}, map[string]int{one: int(user), two: 0})
		got, err := parseEntries(family, hostAlignment(), info, b)
		names := []string{one, two}
		slices.Sort(names)
		if err != nil || got.rules != int(builtin)+int(user) || sortedNames(got) != strings.Join(names, " ") {
			t.Fatalf("got %q, %d rules, %v, want %q, %d", sortedNames(got), got.rules, err, names,
				int(builtin)+int(user))
		}
		if c := info.bound(family); c.Min > got.rules || c.Max < got.rules {
			t.Fatalf("bound %v does not hold for %d rules", c, got.rules)
		}
	})
}
