// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// FuzzXtables feeds the parser anything as a table. It must end, find only names that are pieces of the table, and give
// nothing beside an error.
func FuzzXtables(f *testing.F) {
	for _, family := range []Family{IPv4, IPv6} {
		info, b := buildTable(family, []int{0, 2, 0}, map[string]int{HintChain: 0, "A": 2})
		f.Add(b, family == IPv6, info.chains, info.entries)
	}
	for _, c := range host.Captures(f, "testdata/legacy-*.txtar") {
		info, err := parseInfo(c.Header)
		host.Check(f, err)
		f.Add(c.Answer, c.Question[1] == "ipv6", info.chains, info.entries)
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
		if got.rules < 0 || entries > len(b)/(layoutOf(family, hostAlignment()).size+sizeofTarget) {
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
	for _, c := range host.Captures(f, "testdata/legacy-*.txtar") {
		f.Add(c.Header)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := parseInfo(b)
		if err != nil {
			if info != (tableInfo{}) {
				t.Fatalf("got %v beside error %v", info, err)
			}
			return
		}
		if got := info.table(IPv4); got.rules < 0 || got.rules >= info.entries || got.chains != nil {
			t.Fatalf("%+v: got %+v", info, got)
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
		checkHeader(t, family, info, got)
	})
}

// within says that part is a piece of whole, not a copy.
func within(part, whole []byte) bool {
	if len(part) == 0 {
		return true
	}
	start := uintptr(unsafe.Pointer(&part[:1][0])) - uintptr(unsafe.Pointer(&whole[:1][0]))
	return start <= uintptr(len(whole)-len(part))
}

// Answers of real kernels are read, and cut anywhere they are not read as a whole.
func TestCaptures(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || entriesOffset(hostAlignment()) != 40 {
		t.Skip("captured on a 64-bit little-endian machine; the other tests build what they read in this one's layout")
	}
	for _, c := range host.Captures(t, "testdata/legacy-*.txtar") {
		family := map[string]Family{"ipv4": IPv4, "ipv6": IPv6}[c.Question[1]]
		info, err := parseInfo(c.Header)
		host.Check(t, err)
		for i := range len(c.Answer) + 1 {
			info.size = uint32(i)
			got, err := parseEntries(family, hostAlignment(), info, c.Answer[:i])
			if whole := i == len(c.Answer); (err == nil) != whole {
				t.Errorf("%s, %d of %d bytes: got %+v, %v", c.File, i, len(c.Answer), got, err)
			} else if words := fmt.Sprintf("chains %s\nrules %d\n", sortedNames(got), got.rules); whole &&
				words != c.Want {
				t.Errorf("%s: got %q, want %q", c.File, words, c.Want)
			}
		}
	}
}
