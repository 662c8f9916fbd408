// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"fmt"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Tables of each family are read, in their order. A name of iptables' is a native table's in the other families.
func TestReadRuleset(t *testing.T) {
	host.Netns(t)
	script(t, `
table ip6 nat { chain MINE { }; chain POSTROUTING { type nat hook postrouting priority 100; policy accept; }; }
table ip filter { chain INPUT { type filter hook input priority 0; policy drop; accept; }; }
table ip raw { flags dormant; chain c { type filter hook output priority 0; policy drop; drop; }; }
table netdev filter { chain c { type filter hook ingress device lo priority 0; policy drop; }; }
table inet filter {
	chain a { type filter hook output priority 0; policy drop; }
	chain b { type filter hook output priority 1; policy drop; drop; drop; }
	chain c { type filter hook forward priority 1; policy drop; }
	chain d { drop; }
}
table bridge filter { chain c { type filter hook prerouting priority 0; policy drop; }; }
table arp filter { chain c { type filter hook output priority 0; policy drop; }; }
table ip mine { chain c { type filter hook input priority 0; accept; }; }
`)
	got, err := ReadRuleset()
	var tables string
	for _, table := range got.Tables {
		tables += fmt.Sprint(table, table.IPv6, table.Chains, "\n")
	}
	const want = "ip filter false [{INPUT true true [{ACCEPT [] false true}]}]\n" +
		"ip6 nat true [{MINE false false []} {POSTROUTING true false []}]\n"
	const native = "[{arp filter 0 [output]} {bridge filter 0 [prerouting]} {inet filter 3 [output forward]} " +
		"{ip mine 1 []} {netdev filter 0 [ingress]}]"
	if err != nil || tables != want || fmt.Sprint(got.Native) != native {
		t.Errorf("got %v\n%s%v, want\n%s%s", err, tables, got.Native, want, native)
	}
}
