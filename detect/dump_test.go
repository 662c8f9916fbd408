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

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// dumpOf reads a dump that is written as words: "filter:INPUT" is a rule, "filter:INPUT*" one with a match,
// "filter:INPUT!" one that iptables-nft cannot print, and "~" the mark that the rules changed.
func dumpOf(t *testing.T, end limit, words string) (d ruleDump, read int) {
	t.Helper()
	d.tables = uncounted()
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
		m, _, err := netlink.Next(nftMessage(unix.NFT_MSG_NEWRULE, flags, 7, unix.NFPROTO_IPV4,
			ofTable(table).Text(unix.NFTA_RULE_CHAIN, strings.TrimRight(chain, "*!")).Nest(unix.NFTA_RULE_EXPRESSIONS,
				expressions)))
		if err != nil {
			t.Fatal(err)
		}
		d.take(m, "")
		read++
		if d.reached(end) {
			return d, read
		}
	}
	return d, read
}

var unlimited = limit{Unbounded, Unbounded}

func times(n int, word string) string { return strings.Repeat(word+" ", n) }

// Where reading ends.
func TestEnough(t *testing.T) {
	const most = firstRules + 2*3
	for _, test := range []struct {
		words string
		read  int
	}{
		{times(9, "filter:A"), 9},
		{times(9, "filter:A*"), 3},
		{times(6, "docker:A*") + times(9, "filter:A*"), 9},
		{times(9, "docker:A*") + times(9, "filter:A*"), 7},
		{"nat:A* raw:A filter:A* raw:A nat:A* nat:A", 5},
		{times(most+9, "filter:A"), most},
		{"nat:A ~ " + times(most+9, "nat:A*"), most}, // a change is in between, and matches prove nothing
	} {
		if _, read := dumpOf(t, limit{3, 7}, test.words); read != test.read {
			t.Errorf("%s: got %d read, want %d", test.words, read, test.read)
		}
	}
}

// Enough rules with a match end a dump only if none changed before: those that came after a change prove nothing.
func TestReached(t *testing.T) {
	for _, test := range []struct {
		doc  string
		dump ruleDump
		want bool
	}{
		{"fewer", ruleDump{read: 4, xt: 4}, false},
		{"enough", ruleDump{read: 5, xt: 5}, true},
		{"enough, and a change", ruleDump{read: 5, xt: 5, changed: true}, false},
		{"enough without a match", ruleDump{read: firstRules + 10}, true},
		{"hardly", ruleDump{read: firstRules + 9}, false},
		{"enough of others", ruleDump{native: 7}, true},
	} {
		if got := test.dump.reached(limit{rules: 5, native: 7}); got != test.want {
			t.Errorf("%s: got %v", test.doc, got)
		}
	}
}

// The attempt without a change counts, else the one that has seen most.
func TestBetterDump(t *testing.T) {
	for _, test := range []struct {
		earlier, read int
		err           error
		want          bool
	}{
		{earlier: 9, read: 3, err: nil, want: true},
		{earlier: 3, read: 9, err: errInterrupted, want: true},
		{earlier: 9, read: 9, err: errInterrupted, want: true},
		{earlier: 9, read: 3, err: errInterrupted, want: false},
	} {
		d := ruleDump{read: test.read}
		if got := d.better(ruleDump{read: test.earlier}, test.err); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

// Bounds are what was there before a change, the estimate is what was seen at all.
func TestChangedDump(t *testing.T) {
	d, _ := dumpOf(t, unlimited, "filter:A nat:A nat:A* ~ nat:B* docker:A* nat:A")
	if filter, nat := d.tables[0], d.tables[1]; filter.Min != 1 || filter.seen != 1 || nat.Min != 2 ||
		nat.seen != 4 || nat.Max != Unbounded ||
		!slices.Equal(nat.xt, []chainRules{{chain: "A", rules: 1}}) || !d.changed {
		t.Errorf("got %+v", d)
	}
}

// Rules with a match or target count by their chains, and one of the first rules that iptables-nft cannot print shows.
func TestWhoMadeRules(t *testing.T) {
	d, _ := dumpOf(t, unlimited, "filter:A* filter:A filter:B* filter:B* docker:A* filter:B! filter:C!")
	if got := d.tables[0]; got.nftOnly != "B" || got.Min != 6 ||
		!slices.Equal(got.xt, []chainRules{{chain: "A", rules: 1}, {chain: "B", rules: 2}}) || d.xt != 3 {
		t.Errorf("got %+v", d)
	}
	late, _ := dumpOf(t, unlimited, times(firstRules, "nat:A")+"nat:A! nat:A*")
	if got := late.tables[1]; got.nftOnly != "" || len(got.xt) != 1 {
		t.Errorf("after the first rules: got %+v", got)
	}
	last, _ := dumpOf(t, unlimited, times(firstRules-1, "nat:A")+"nat:A!")
	if got := last.tables[1]; got.nftOnly != "A" {
		t.Errorf("the last of the first rules: got %+v", got)
	}
}

// Linux before 4.12 dumps all tables even if one is named.
func TestTakeNamed(t *testing.T) {
	m, _, _ := netlink.Next(rule(0, 7))
	var d ruleDump
	d.take(m, "nat")
	if d.read != 0 || d.native != 0 {
		t.Errorf("another table: got %+v", d)
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
			if _, err := fmt.Fprintf(lines, "add element ip busy s { 10.%d.%d.%d }\n", i>>16&255, i>>8&255,
				i&255); err != nil {
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
	rules := "*filter\n" + strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n",
		5000) + "COMMIT\n" // none shows who made it
	host.Feed(t, rules, "iptables-nft-restore")
	host.Feed(t, strings.Replace(rules, strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 3500), "", 1),
		"iptables-legacy-restore")
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
