// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
)

// newRule returns NFT_MSG_NEWRULE with one expression and a counter, for a table that is not native.
func newRule(name string, data nft.Attributes) nft.Message {
	list := nft.Attributes{}
	for _, e := range []nft.Attributes{
		nft.Attributes{}.Text(unix.NFTA_EXPR_NAME, name).Nest(unix.NFTA_EXPR_DATA, data),
		nft.Attributes{}.Text(unix.NFTA_EXPR_NAME, "counter"),
	} {
		list = list.Nest(unix.NFTA_LIST_ELEM, e)
	}
	a := nft.Attributes{}.Text(unix.NFTA_RULE_CHAIN, "c").Nest(unix.NFTA_RULE_EXPRESSIONS, list)
	return nft.Message{Body: append([]byte{unix.NFPROTO_IPV4, 0, 0, 0}, a...)}
}

// What this kernel or this iptables cannot make.
func TestQueue(t *testing.T) {
	verdict := func(code uint32) nft.Message {
		v := nft.Attributes{}.BE32(unix.NFTA_VERDICT_CODE, code)
		return newRule("immediate", nft.Attributes{}.Nest(unix.NFTA_IMMEDIATE_DATA,
			nft.Attributes{}.Nest(unix.NFTA_DATA_VERDICT, v)))
	}
	target := func(revision uint32, info ...byte) nft.Message {
		return newRule("target", nft.Attributes{}.Text(unix.NFTA_TARGET_NAME, "NFQUEUE").
			BE32(unix.NFTA_TARGET_REV, revision).Bytes(unix.NFTA_TARGET_INFO, info))
	}
	queue := func(flags ...byte) nft.Message {
		return newRule("queue", nft.Attributes{}.Bytes(unix.NFTA_QUEUE_FLAGS, flags))
	}
	all := bytes.Repeat([]byte{0xff}, 8)
	for i, test := range []struct {
		rule nft.Message
		acts bool
	}{
		{rule: verdict(0), acts: true}, {rule: verdict(1)}, {rule: verdict(3), acts: true}, {rule: verdict(4)},
		{rule: newRule("immediate", nil)},
		{rule: queue(0, 0), acts: true}, {rule: queue(0, 1)}, {rule: queue(1, 2), acts: true},
		{rule: queue(), acts: true},
		{rule: target(1, all...), acts: true}, {rule: target(2, all...)}, {rule: target(3, all...)},
		{rule: target(3, all[:5]...), acts: true}, {rule: target(3, make([]byte, 8)...), acts: true},
	} {
		var table Table
		err := table.rule(test.rule)
		if err != nil || table.Acts == 1 != test.acts || table.Rules != 1 {
			t.Errorf("%d: got %+v, %v", i, table, err)
		}
	}
}

// FuzzMessages reads anything as a table, a chain and a rule, and each part of it from its beginning.
func FuzzMessages(f *testing.F) {
	f.Add(newRule("target", nft.Attributes{}.Text(unix.NFTA_TARGET_NAME, "NFQUEUE").BE32(unix.NFTA_TARGET_REV, 2)).Body)
	f.Add(append([]byte{unix.NFPROTO_ARP, 0, 0, 0}, nft.Attributes{}.
		Text(unix.NFTA_CHAIN_TABLE, "filter").BE32(unix.NFTA_CHAIN_POLICY, 0).
		Nest(unix.NFTA_CHAIN_HOOK, nft.Attributes{}.BE32(unix.NFTA_HOOK_HOOKNUM, 1<<31))...))
	f.Fuzz(func(t *testing.T, body []byte) {
		for size := 4; size <= len(body); size++ {
			m := nft.Message{Body: body[:size]}
			r := reader{family: body[0], tables: map[string]*Table{}}
			_ = r.table(m)
			filter := &Table{Name: "filter"}
			r.tables["filter"], r.tables["nat"] = filter, &Table{Name: "nat", Native: true}
			_ = r.chain(m)
			_ = filter.rule(m)
			if len(r.tables) > 3 || filter.Rules != 1 || filter.Acts+filter.DNS > 1 || filter.NFTMade > 1 ||
				len(filter.Chains)+len(filter.Wrong) > 1 || len(filter.Policies) > 1 {
				t.Fatalf("got %+v, %+v", r.tables, filter)
			}
		}
	})
}
