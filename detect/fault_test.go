// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"io"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What iptables-nft does in such a table, what it lists, and what is said of it. A rule that it lists counts.
func TestFaults(t *testing.T) {
	const rule = "-A INPUT -s 192.0.2.1/32 -j DROP"
	add := append([]string{"iptables-nft"}, strings.Fields(rule)...)
	for _, test := range []struct {
		doc    string
		script string
		fails  string // what iptables-nft says when it adds a rule to INPUT, "" if it does so
		rules  int    // that it lists
		want   []Fault
	}{
		{"none", "add table ip filter", "", 1, nil},
		{"dormant", "add table ip filter { flags dormant; }", "", 1, []Fault{{Kind: FaultDormant, Table: "filter"}}},
		{
			"dormant, with a rule",
			"add table ip filter { flags dormant; }; " +
				"add chain ip filter INPUT { type filter hook input priority 0; }; add rule ip filter INPUT accept",
			"", 2, []Fault{{Kind: FaultDormant, Table: "filter"}},
		},
		{
			"INPUT is not hooked", "add table ip filter; add chain ip filter INPUT",
			"CHAIN_ADD failed (Operation not supported): chain INPUT", 0,
			[]Fault{{Kind: FaultNotHooked, Table: "filter", Chain: "INPUT"}},
		},
		{
			"INPUT is not hooked and has a rule",
			"add table ip filter; add chain ip filter INPUT; add rule ip filter INPUT accept",
			"CHAIN_ADD failed (Operation not supported): chain INPUT", 1,
			[]Fault{{Kind: FaultNotHooked, Table: "filter", Chain: "INPUT"}},
		},
		{
			"FORWARD is not hooked, and neither is a chain of somebody's own",
			"add table ip filter; add chain ip filter FORWARD; add chain ip filter PREROUTING; add chain ip filter PUT",
			"", 1, []Fault{{Kind: FaultNotHooked, Table: "filter", Chain: "FORWARD"}},
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			nftScript(t, test.script)
			output, err := exec.Command(add[0], add[1:]...).CombinedOutput()
			if failed := err != nil; failed != (test.fails != "") || !strings.Contains(string(output), test.fails) {
				t.Errorf("iptables-nft: %v: %s", err, output)
			}
			saved := host.Run(t, "iptables-nft-save")
			if listed := strings.Count(saved, "\n-A "); listed != test.rules {
				t.Errorf("iptables-nft-save lists %d rules: %s", listed, saved)
			}
			r := Query{Everything: true}.Run()
			four, six := r.Of(NFT, IPv4), r.Of(NFT, IPv6)
			if !slices.Equal(four.Faults, test.want) || six.Faults != nil || four.Rules != exactly(test.rules) {
				t.Errorf("got %+v and %+v, %v", four.Faults, six.Faults, four.Rules)
			}
		})
	}
}

// A table that a process owns can be changed by that one alone, and is gone with it.
func TestOwnedTable(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip6 mangle { flags dormant; }")
	owner := exec.Command("nft", "-i")
	stdin, err := owner.StdinPipe()
	host.Check(t, err)
	stdout, err := owner.StdoutPipe()
	host.Check(t, err)
	host.Check(t, owner.Start())
	_, err = io.WriteString(stdin, "add table ip6 nat { flags owner; }\nlist table ip6 nat\n")
	host.Check(t, err)
	seen := make([]byte, 1)
	_, err = io.ReadFull(stdout, seen) // the list: the table is there
	host.Check(t, err)

	output, err := exec.Command("ip6tables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "Operation not permitted") {
		t.Errorf("ip6tables-nft: %v: %s", err, output)
	}
	want := []Fault{{Kind: FaultOwned, Table: "nat"}, {Kind: FaultDormant, Table: "mangle"}}
	if got := (Query{Everything: true}).Run().Of(NFT, IPv6).Faults; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if e := Host().Of(NFT, IPv6); e.Faults != nil {
		t.Errorf("not asked for: got %+v", e.Faults)
	}
	host.Check(t, stdin.Close())
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	host.Check(t, owner.Wait())
	if got := (Query{Everything: true}).Run().Of(NFT, IPv6).Faults; !slices.Equal(got, want[1:]) {
		t.Errorf("the owner is gone: got %+v", got)
	}
}

// A table can have several faults, and one of another family or name has none that matters.
func TestFaultyTables(t *testing.T) {
	tables := []listedTable{
		{"ip6 filter", unix.NFT_TABLE_F_DORMANT}, {"inet filter", 3}, {"ip mine", 3}, {"ip raw", 3}, {"ip mangle", 4},
		{"ip nat", 0},
	}
	want := []Fault{{Kind: FaultDormant, Table: "raw"}, {Kind: FaultOwned, Table: "raw"}}
	if got := faultyTables(IPv4, tables); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
