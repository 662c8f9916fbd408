// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// dumpOf reads a dump that is written as words: "filter:INPUT" is a rule, "filter:INPUT*" one with a match, "filter:INPUT!" one
// that iptables-nft cannot print, and "~" the mark that the rules changed.
func dumpOf(t *testing.T, end until, words string) (d ruleDump, read int) {
	t.Helper()
	flags := uint16(unix.NLM_F_MULTI)
	for word := range strings.FieldsSeq(words) {
		if word == "~" {
			flags |= unix.NLM_F_DUMP_INTR
			d.changed = strings.HasSuffix(words, "~") // seen at its end
			continue
		}
		table, chain, _ := strings.Cut(word, ":")
		expressions := expression("counter", nil)
		if strings.HasSuffix(chain, "*") {
			expressions = append(expressions, expression("match", nil)...)
		} else if strings.HasSuffix(chain, "!") {
			expressions = append(expressions, expression("ct", nil)...)
		}
		m, _, err := nextMessage(nftMessage(unix.NFT_MSG_NEWRULE, flags, 7, unix.NFPROTO_IPV4,
			ofTable(table).text(unix.NFTA_RULE_CHAIN, strings.TrimRight(chain, "*!")).nest(unix.NFTA_RULE_EXPRESSIONS, expressions)))
		if err == nil {
			err = d.take(m, IPv4, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		if read++; d.enough(end) {
			return d, read
		}
	}
	d.ended = true
	return d, read
}

func times(n int, word string) string { return strings.Repeat(word+" ", n) }

// Where reading ends.
func TestEnough(t *testing.T) {
	for _, test := range []struct {
		end   until
		words string
		read  int
	}{
		{toTheEnd, times(9, "filter:A*"), 9},
		{until{5, 9, 9}, "docker:A docker:A* " + times(9, "nat:A"), 5},
		{until{9, 5, 9}, "docker:A " + times(9, "nat:A"), 6},
		{until{9, 9, 2}, "docker:A* nat:A nat:A* raw:A* nat:A", 4},
		{until{9, 2, 1}, "nat:A ~ " + times(9, "nat:A*"), 4}, // twice as far: a change is in between, and matches prove nothing
		{until{3, 9, 9}, "nat:A ~ " + times(9, "docker:A*"), 6},
	} {
		if _, read := dumpOf(t, test.end, test.words); read != test.read {
			t.Errorf("%+v, %s: got %d read, want %d", test.end, test.words, read, test.read)
		}
	}
}

// What several attempts say together: bounds are what one of them saw before a change, the estimate the most that one saw at all.
func TestAttempts(t *testing.T) {
	const filter, nat = 0, 1
	want := func(n Count, seen int) tableRules { return tableRules{Count: n, seen: seen} }
	for _, test := range []struct {
		doc         string
		attempts    []string // the last one has no change if it has no "~"
		filter, nat tableRules
	}{
		{"no change", []string{"filter:A nat:A nat:A"}, want(exactly(1), 1), want(exactly(2), 2)},
		{"a change, then none", []string{times(9, "nat:A") + "~ nat:A", "nat:A"}, want(exactly(0), 0), want(exactly(1), 1)},
		{"a change at the start", []string{"~ " + times(9, "nat:A")}, want(Count{0, Unbounded}, 0), want(Count{0, Unbounded}, 9)},
		{"most before a change", []string{times(3, "nat:A") + "~", times(5, "nat:A") + "~", times(2, "nat:A") + "~ " + times(7, "nat:A")},
			want(Count{0, Unbounded}, 0), want(Count{5, Unbounded}, 9)},
		{"most at once, not each table's most", []string{times(4, "filter:A") + "nat:A ~", times(3, "nat:A") + "~"},
			want(Count{4, Unbounded}, 4), want(Count{1, Unbounded}, 3)},
	} {
		var all dumps
		var err error
		for _, words := range test.attempts {
			d, _ := dumpOf(t, toTheEnd, words)
			if err = nil; d.changed {
				err = errInterrupted
			}
			all.add(d, err)
		}
		got := all.tables(err)
		if g := got[filter]; g.Count != test.filter.Count || g.seen != test.filter.seen {
			t.Errorf("%s: filter: got %+v, want %+v", test.doc, g, test.filter)
		}
		if g := got[nat]; g.Count != test.nat.Count || g.seen != test.nat.seen {
			t.Errorf("%s: nat: got %+v, want %+v", test.doc, g, test.nat)
		}
	}
}

// Rules with a match or target count by their chains, before a change; one that iptables-nft cannot print is not forgotten.
func TestWhoMadeRules(t *testing.T) {
	var all dumps
	first, _ := dumpOf(t, toTheEnd, "filter:A! filter:B! ~ filter:A*")
	all.add(first, errInterrupted)
	second, _ := dumpOf(t, toTheEnd, "filter:A* filter:A filter:B* filter:B* docker:A*")
	all.add(second, nil)
	got := all.tables(nil)[0]
	if got.nftOnly != "A" || got.Count != exactly(4) || !slices.Equal(got.xt, []chainRules{{"A", 1}, {"B", 2}}) || second.read.xt != 3 {
		t.Errorf("got %+v, %+v", got, second.read)
	}
	late, _ := dumpOf(t, toTheEnd, times(firstRules, "nat:A")+"nat:A! nat:A*")
	if got := late.tables[1]; got.nftOnly != "" || !slices.Equal(got.xt, []chainRules{{"A", 1}}) {
		t.Errorf("after the first rules: got %+v", got)
	}
	last, _ := dumpOf(t, toTheEnd, times(firstRules-1, "nat:A")+"nat:A!")
	if got := last.tables[1]; got.nftOnly != "A" {
		t.Errorf("the last of the first rules: got %+v", got)
	}
}

// A dump of another family is none, and one without a table neither.
func TestTakeRefuses(t *testing.T) {
	for _, family := range []uint8{unix.NFPROTO_IPV6, unix.NFPROTO_INET} {
		m, _, err := nextMessage(nftMessage(unix.NFT_MSG_NEWRULE, 0, 7, family, ofTable("filter")))
		if err != nil {
			t.Fatal(err)
		}
		var d ruleDump
		if err := d.take(m, IPv4, ""); err != errWrongObject || d.read.messages != 0 {
			t.Errorf("got %v, %+v", err, d.read)
		}
	}
	// Linux before 4.12 dumps all tables even if one is named.
	m, _, _ := nextMessage(rule(0, 7))
	var d ruleDump
	if err := d.take(m, IPv4, "nat"); err != nil || d.read != (until{}) {
		t.Errorf("another table: got %v, %+v", err, d.read)
	}
}

// busyWriter changes a table that is nobody's, without end: each line is a transaction, and each interrupts a dump.
func busyWriter(t *testing.T) {
	t.Helper()
	host.Run(t, "nft", "add table ip busy; add set ip busy s { type ipv4_addr; }")
	cmd := exec.Command("nft", "-i")
	cmd.Stdout = io.Discard
	lines, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(lines, "add element ip busy s { 10.%d.%d.%d }\n", i>>16&255, i>>8&255, i&255); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-ended
	})
}

// However busy a writer is, a partial count of nft is not compared with an exact one of legacy.
func TestBusyWriter(t *testing.T) {
	host.Netns(t)
	rules := "*filter\n" + strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 5000) + "COMMIT\n" // none shows who made it
	host.Feed(t, rules, "iptables-nft-restore")
	host.Feed(t, strings.Replace(rules, strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 3500), "", 1), "iptables-legacy-restore")
	busyWriter(t)
	conclusive, estimates := 0, 0
	const calls = 6
	for range calls {
		r := Host()
		if r.Mode != NFT || r.Memorable() != nil || r.Of(NFT, IPv4).Rules.Min > 5000 {
			t.Errorf("got %v, %v, %+v", r, r.Memorable(), r.Of(NFT, IPv4))
		}
		if r.Conclusive {
			conclusive++
		}
		if r.Of(NFT, IPv4).Estimate > 0 {
			estimates++
		}
	}
	t.Logf("of %d, %d conclusive, %d by an estimate", calls, conclusive, estimates)
}
