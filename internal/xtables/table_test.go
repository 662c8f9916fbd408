// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const (
	hint   = "KUBE-IPTABLES-HINT"
	canary = "KUBE-KUBELET-CANARY"
)

// layout is how a kernel hands out a family's tables to a program.
type layout struct {
	ipv6  bool
	align int
}

func (l layout) String() string { return fmt.Sprintf("ipv6 %v, aligned to %d", l.ipv6, l.align) }

var layouts = []layout{{false, 8}, {true, 8}, {false, 4}, {true, 4}}

// entry builds an entry with one match of matchSize bytes and a target.
func (l layout) entry(matchSize int, target, errorName string) []byte {
	offset, size := entryLayout(l.ipv6, l.align)
	b := make([]byte, size+matchSize+sizeofTarget)
	binary.NativeEndian.PutUint16(b[offset:], uint16(size+matchSize))
	copy(b[size+matchSize+2:][:targetNameSize], target)
	if target == "ERROR" {
		b = append(b, make([]byte, errorNameSize+2)...)
		copy(b[size+matchSize+sizeofTarget:][:errorNameSize], errorName)
	} else {
		b = append(b, make([]byte, l.align)...) // the verdict
	}
	binary.NativeEndian.PutUint16(b[offset+2:], uint16(len(b)))
	return b
}

// table builds a table as the kernel hands it out: built-in chains and user-defined ones with so many rules each, of
// which those in built-in chains have a match of matchSize bytes.
func (l layout) table(matchSize int, builtin []int, users map[string]int) (header, []byte) {
	h := header{chains: len(builtin)}
	var b []byte
	add := func(e []byte) {
		b = append(b, e...)
		h.entries++
	}
	for _, n := range builtin {
		for range n {
			add(l.entry(matchSize, "", ""))
		}
		add(l.entry(0, "", ""))
	}
	for name, n := range users {
		add(l.entry(0, "ERROR", name))
		for range n {
			add(l.entry(0, "MARK", ""))
		}
		add(l.entry(0, "", "")) // return
	}
	add(l.entry(0, "ERROR", "ERROR"))
	h.size = uint32(len(b))
	return h, b
}

func sortedChains(t Table) string {
	return strings.Join(slices.Sorted(slices.Values(t.Chains)), " ")
}

// every chooses all chains.
func every([]byte) bool { return true }

func TestParseEntries(t *testing.T) {
	for _, l := range layouts {
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
			{"chains of kubelet", []int{0, 0, 0, 0, 0}, map[string]int{hint: 0, canary: 0}, hint + " " + canary, 0},
			{"rules in a chain", []int{1, 0}, map[string]int{"A": 3}, "A", 4},
			{"the longest name", []int{1, 0}, map[string]int{strings.Repeat("x", 29): 0}, strings.Repeat("x", 29), 1},
			{"a name without NUL", []int{0}, map[string]int{strings.Repeat("x", 30): 0}, strings.Repeat("x", 30), 0},
		} {
			h, b := l.table(40, test.builtin, test.users)
			got, err := parseEntries(l.ipv6, l.align, h, b, every)
			if err != nil || sortedChains(got) != test.chains || got.Rules != test.rules || !got.Whole {
				t.Errorf("%s, %s: got %q, %+v, %v, want %q, %d", l, test.doc, sortedChains(got), got, err, test.chains,
					test.rules)
			}
			hasHint := func(name []byte) bool { return string(name) == hint }
			_, isUser := test.users[hint]
			chosen, err := parseEntries(l.ipv6, l.align, h, b, hasHint)
			if err != nil || slices.Equal(chosen.Chains, []string{hint}) != isUser || chosen.Rules != got.Rules {
				t.Errorf("%s, %s, only the hint: got %+v, %v", l, test.doc, chosen, err)
			}
			for i := range b {
				h.size = uint32(i)
				got, err := parseEntries(l.ipv6, l.align, h, b[:i], every)
				// What ends after an entry may be another table.
				isEmpty := got.Chains == nil && got.Rules == 0 && !got.Whole
				if err != errBadTable && err != iptables.ErrChanged || !isEmpty {
					t.Fatalf("%s, %s: cut at %d of %d bytes: got %+v, %v", l, test.doc, i, len(b), got, err)
				}
			}
		}
	}
}

func TestParseEntriesMalformed(t *testing.T) {
	l := layouts[0]
	offset, size := entryLayout(l.ipv6, l.align)
	put := func(offset int, value uint16) func(*header, []byte) {
		return func(_ *header, b []byte) { binary.NativeEndian.PutUint16(b[offset:], value) }
	}
	for doc, spoil := range map[string]func(*header, []byte){
		"next entry at the same place":        put(offset+2, 0),
		"next entry inside the target":        put(offset+2, uint16(size+sizeofTarget-1)),
		"next entry beyond the table":         put(offset+2, 60000),
		"target inside the entry":             put(offset, uint16(size-1)),
		"target beyond the entry":             put(offset, 60000),
		"another size than the header says":   func(h *header, _ []byte) { h.size-- },
		"a chain's head too short for a name": func(_ *header, b []byte) { copy(b[size+2:], "ERROR\x00") },
	} {
		h, b := l.table(40, []int{0, 2}, map[string]int{"A": 1})
		spoil(&h, b)
		got, err := parseEntries(l.ipv6, l.align, h, b, every)
		if err != errBadTable || got.Chains != nil || got.Whole {
			t.Errorf("%s: got %+v, %v", doc, got, err)
		}
	}
}

// Entries that another header would count belong to a table that has replaced the first one.
func TestParseEntriesChanged(t *testing.T) {
	l := layouts[0]
	for doc, change := range map[string]func(*header){
		"fewer entries than the header says": func(h *header) { h.entries++ },
		"more entries than the header says":  func(h *header) { h.entries-- },
		"more policies than entries":         func(h *header) { h.chains = 9 },
	} {
		h, b := l.table(40, []int{0, 2}, map[string]int{"A": 1})
		change(&h)
		got, err := parseEntries(l.ipv6, l.align, h, b, every)
		if err != iptables.ErrChanged || got.Chains != nil || got.Whole {
			t.Errorf("%s: got %+v, %v", doc, got, err)
		}
	}
}

func TestParseHeader(t *testing.T) {
	b := make([]byte, sizeofGetInfo)
	field := func(i int, v uint32) { binary.NativeEndian.PutUint32(b[tableNameSize+4*i:], v) }
	copy(b, "filter")
	field(0, 0b01110) // INPUT, FORWARD, OUTPUT
	field(3, 152)     // FORWARD has a rule
	field(8, 304)
	field(4, 456)
	field(9, 456)
	field(11, 5)
	field(12, 784)
	got, err := parseHeader(b)
	want := header{chains: 3, entries: 5, size: 784, valid: 0b01110}
	want.policy[2], want.policy[3] = 304, 456
	if got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	for i := range b {
		got, err := parseHeader(b[:i])
		if err != errBadTable || got != (header{}) {
			t.Fatalf("cut at %d: got %+v, %v", i, got, err)
		}
	}
}

// The kernel compares what it is given with the size of its own struct, so these numbers are part of the interface.
func TestLayout(t *testing.T) {
	want := map[bool][3]int{false: {40, 112, 168}, true: {36, 112, 164}}[runtime.GOARCH == "386"]
	align := alignments()[0]
	_, size4 := entryLayout(false, align)
	_, size6 := entryLayout(true, align)
	got := [3]int{entriesOffset(align), size4, size6}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Answers of real kernels are read, and cut anywhere they are not read as a whole.
func TestCaptures(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || alignments()[0] != 8 {
		t.Skip("captured on a 64-bit little-endian machine; the other tests build what they read in this one's layout")
	}
	for _, c := range host.Captures(t, "testdata/legacy-*.txtar") {
		h, err := parseHeader(c.Header)
		host.Check(t, err)
		for i := range len(c.Answer) + 1 {
			h.size = uint32(i)
			got, err := parseEntries(c.Question[1] == "ipv6", 8, h, c.Answer[:i], every)
			whole := i == len(c.Answer)
			if (err == nil) != whole {
				t.Errorf("%s, %d of %d bytes: got %+v, %v", c.File, i, len(c.Answer), got, err)
			}
			words := fmt.Sprintf("chains %s\nrules %d\n", sortedChains(got), got.Rules)
			if whole && words != c.Want {
				t.Errorf("%s: got %q, want %q", c.File, words, c.Want)
			}
		}
	}
}
