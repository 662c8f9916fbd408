// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// entry builds an entry with one match of matchSize bytes and a target.
func entry(family Family, matchSize int, target, errorName string) []byte {
	at := layoutOf(family, hostAlignment())
	b := make([]byte, at.size+matchSize+sizeofTarget)
	binary.NativeEndian.PutUint16(b[at.targetOffset:], uint16(at.size+matchSize))
	copy(b[at.size+matchSize+2:][:targetNameSize], target)
	if target == "ERROR" {
		b = append(b, make([]byte, errorNameSize+2)...)
		copy(b[at.size+matchSize+sizeofTarget:][:errorNameSize], errorName)
	} else {
		b = append(b, make([]byte, hostAlignment())...) // the verdict
	}
	binary.NativeEndian.PutUint16(b[at.nextOffset:], uint16(len(b)))
	return b
}

// buildTable builds a table as the kernel hands it out: built-in chains and user-defined ones with so many rules each,
// of which those in built-in chains have a match of 40 bytes.
func buildTable(family Family, builtin []int, users map[string]int) (tableInfo, []byte) {
	return buildTableOf(family, 40, builtin, users)
}

func buildTableOf(family Family, matchSize int, builtin []int, users map[string]int) (tableInfo, []byte) {
	info := tableInfo{chains: len(builtin)}
	var b []byte
	add := func(e []byte) {
		b = append(b, e...)
		info.entries++
	}
	for _, n := range builtin {
		if n > 0 {
			info.used++
		}
		start := len(b)
		for range n {
			add(entry(family, matchSize, "", ""))
		}
		info.rules += len(b) - start
		add(entry(family, 0, "", ""))
	}
	for name, n := range users {
		add(entry(family, 0, "ERROR", name))
		for range n {
			add(entry(family, 0, "MARK", ""))
		}
		add(entry(family, 0, "", "")) // return
	}
	add(entry(family, 0, "ERROR", "ERROR"))
	info.size = uint32(len(b))
	return info, b
}

func sortedNames(t legacyTable) string {
	var s []string
	for _, c := range t.chains {
		s = append(s, string(c))
	}
	slices.Sort(s)
	return strings.Join(s, " ")
}

func TestParseEntries(t *testing.T) {
	for _, family := range []Family{IPv4, IPv6} {
		for _, test := range []struct {
			doc     string
			builtin []int
			users   map[string]int
			chains  string
			rules   int
		}{
			{"empty", []int{0, 0, 0}, nil, "", 0},
			{"no built-in chain", nil, nil, "", 0},
			{"rules in built-in chains", []int{2, 0, 1}, nil, "", 3},
			{"kubelet's chains", []int{0, 0, 0, 0, 0}, map[string]int{HintChain: 0, CanaryChain: 0},
				"KUBE-IPTABLES-HINT KUBE-KUBELET-CANARY", 0},
			{"rules in a chain", []int{1, 0}, map[string]int{"A": 3}, "A", 4},
			{"many rules in a built-in chain", []int{9, 0}, nil, "", 9},
			{"small rules in a chain", []int{0, 0}, map[string]int{"A": 4}, "A", 4},
			{"the longest name", []int{1, 0}, map[string]int{strings.Repeat("x", 29): 0}, strings.Repeat("x", 29), 1},
			{"a name without NUL", []int{0}, map[string]int{strings.Repeat("x", 30): 0}, strings.Repeat("x", 30), 0},
		} {
			info, b := buildTable(family, test.builtin, test.users)
			got, err := parseEntries(family, hostAlignment(), info, b)
			if err != nil || sortedNames(got) != test.chains || got.rules != test.rules {
				t.Errorf("%s %s: got %q, %d rules, %v, want %q, %d", family, test.doc, sortedNames(got), got.rules,
					err, test.chains, test.rules)
			}
			if got.any != answer(test.rules > 0) || !got.known {
				t.Errorf("%s %s: got %+v", family, test.doc, got)
			}
			checkHeader(t, family, info, got)
			for i := range b {
				short := info
				short.size = uint32(i)
				if got, err := parseEntries(family, hostAlignment(), short, b[:i]); err == nil || got.chains != nil ||
					got.rules != 0 || got.known {
					t.Fatalf("%s %s: cut at %d of %d bytes: got %v, %v", family, test.doc, i, len(b), got, err)
				}
			}
		}
	}
}

// checkHeader checks that what the header alone says is not wrong.
func checkHeader(t *testing.T, family Family, info tableInfo, all legacyTable) {
	t.Helper()
	got := info.table(family)
	if got.known && (len(all.chains) > 0 || got.rules != all.rules) || got.rules < all.rules ||
		got.any != Unknown && got.any != all.any || hostAlignment() == 8 && len(all.chains) == 0 && !got.known {
		t.Errorf("%s: the header says %+v, the entries say %+v", family, got, all)
	}
}

func TestParseEntriesMalformed(t *testing.T) {
	at := layoutOf(IPv4, hostAlignment())
	put := func(offset int, value uint16) func(*tableInfo, []byte) {
		return func(_ *tableInfo, b []byte) { binary.NativeEndian.PutUint16(b[offset:], value) }
	}
	for _, test := range []struct {
		doc   string
		spoil func(*tableInfo, []byte)
		want  error
	}{
		{"next entry at the same place", put(at.nextOffset, 0), errBadTable},
		{"next entry inside the target", put(at.nextOffset, uint16(at.size+sizeofTarget-1)), errBadTable},
		{"next entry beyond the table", put(at.nextOffset, 60000), errBadTable},
		{"target inside the entry", put(at.targetOffset, uint16(at.size-1)), errBadTable},
		{"target beyond the entry", put(at.targetOffset, 60000), errBadTable},
		{"fewer entries than the header says", func(i *tableInfo, _ []byte) { i.entries++ }, errBadTable},
		{"more entries than the header says", func(i *tableInfo, _ []byte) { i.entries-- }, errBadTable},
		{"more policies than entries", func(i *tableInfo, _ []byte) { i.chains = 9 }, errBadTable},
		{"another size than the header says", func(i *tableInfo, _ []byte) { i.size-- }, errBadTable},
		{"chain name cut off", func(i *tableInfo, b []byte) {
			// The first entry becomes a chain's head that is too short for a name.
			copy(b[at.size+2:], "ERROR\x00")
		}, errBadTable},
	} {
		info, b := buildTable(IPv4, []int{0, 2}, map[string]int{"A": 1})
		test.spoil(&info, b)
		if got, err := parseEntries(IPv4, hostAlignment(), info, b); !errors.Is(err, test.want) || got.chains != nil {
			t.Errorf("%s: got %v, %v, want %v", test.doc, got, err, test.want)
		}
	}
}

func TestParseInfo(t *testing.T) {
	b := make([]byte, sizeofGetInfo)
	field := func(i int, v uint32) { binary.NativeEndian.PutUint32(b[tableNameSize+4*i:], v) }
	copy(b, "filter")
	field(0, 0b01110) // INPUT, FORWARD, OUTPUT
	field(2, 0)       // INPUT begins with its policy
	field(7, 0)
	field(3, 152) // FORWARD has a rule
	field(8, 304)
	field(4, 456)
	field(9, 456)
	field(11, 5)
	field(12, 784)
	got, err := parseInfo(b)
	if want := (tableInfo{chains: 3, used: 1, rules: 152, entries: 5, size: 784}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for i := range b {
		if _, err := parseInfo(b[:i]); !errors.Is(err, errBadTable) {
			t.Fatalf("cut at %d: got %v", i, err)
		}
	}
	field(11, 3) // no room for the end
	if _, err := parseInfo(b); !errors.Is(err, errBadTable) {
		t.Errorf("too few entries: got %v", err)
	}
}

// The kernel compares what it is given with the size of its own struct, so these numbers are part of the interface.
func TestLayout(t *testing.T) {
	want := map[bool][3]int{false: {40, 112, 168}, true: {36, 112, 164}}[runtime.GOARCH == "386"]
	if got := [3]int{entriesOffset(hostAlignment()), layoutOf(IPv4, hostAlignment()).size,
		layoutOf(IPv6, hostAlignment()).size}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
