// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
)

// bases are the priorities of the base chains that iptables-nft makes (xtables_ipv4 in iptables/nft.c).
var bases = map[string]map[string]int{
	"filter":   {"INPUT": 0, "FORWARD": 0, "OUTPUT": 0},
	"nat":      {"PREROUTING": -100, "INPUT": 100, "OUTPUT": -100, "POSTROUTING": 100},
	"mangle":   {"PREROUTING": -150, "INPUT": -150, "FORWARD": -150, "OUTPUT": -150, "POSTROUTING": -150},
	"raw":      {"PREROUTING": -300, "OUTPUT": -300},
	"security": {"INPUT": 150, "FORWARD": 150, "OUTPUT": 150},
}

// made are the expressions of which iptables-nft 1.8.7 to 1.8.13 makes its rules. It gives each a counter.
var made = []string{
	"bitwise", "cmp", "counter", "immediate", "limit", "log", "match", "meta", "payload", "range", "target",
}

// reader reads one family of nf_tables.
type reader struct {
	conn   nft.Conn
	family uint8
	tables map[string]*Table
	err    error // the first one
}

func readNFT() (tables []Table, err error) {
	for _, family := range []uint8{
		unix.NFPROTO_IPV4, unix.NFPROTO_IPV6, unix.NFPROTO_INET,
		unix.NFPROTO_ARP, unix.NFPROTO_BRIDGE, unix.NFPROTO_NETDEV,
	} {
		r := reader{family: family, tables: map[string]*Table{}}
		r.read()
		for _, name := range slices.Sorted(maps.Keys(r.tables)) {
			tables = append(tables, *r.tables[name])
		}
		err = cmp.Or(err, r.err)
	}
	return tables, err
}

// read asks for iptables' base chains by name, and where a family has too many rules for one dump, for those of each
// table. So a large native table hides none of them.
func (r *reader) read() {
	defer r.conn.Close()
	// More tables than a dump may have are an error: those of iptables may be missing.
	r.err = r.ask(func() error { return r.conn.Dump(unix.NFT_MSG_GETTABLE, r.family, r.table) })
	err := r.ask(func() error {
		for _, t := range r.tables {
			*t = t.empty()
		}
		return r.conn.Dump(unix.NFT_MSG_GETRULE, r.family, func(m nft.Message) error {
			t := r.tables[m.Attributes().String(unix.NFTA_RULE_TABLE)]
			if t == nil {
				return nil
			}
			return t.rule(m)
		})
	})
	for _, t := range r.tables {
		t.More = err != nil
		if errors.Is(err, nft.ErrTooLarge) {
			failed := r.ask(func() error {
				*t = t.empty()
				return r.conn.DumpRules(r.family, t.Name, t.rule)
			})
			t.More = failed != nil
		}
		for _, chain := range slices.Sorted(maps.Keys(bases[t.Name])) {
			which := nft.Attributes{}.Text(unix.NFTA_CHAIN_TABLE, t.Name).Text(unix.NFTA_CHAIN_NAME, chain)
			r.ask(func() error { return r.conn.Get(unix.NFT_MSG_GETCHAIN, r.family, which, r.chain) })
		}
	}
	err = r.ask(func() error { return r.conn.Dump(unix.NFT_MSG_GETCHAIN, r.family, r.chain) })
	for _, t := range r.tables {
		t.More = t.More || t.Native && err != nil
	}
}

// ask keeps an error, but not that of a bound.
func (r *reader) ask(question func() error) error {
	err := iptables.Persist(question)
	if !errors.Is(err, nft.ErrTooLarge) {
		r.err = cmp.Or(r.err, err)
	}
	return err
}

// table decodes NFT_MSG_NEWTABLE.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_TABLE_NAME   string
//	NFTA_TABLE_FLAGS  __be32: NFT_TABLE_F_DORMANT 1, NFT_TABLE_F_OWNER 2
func (r *reader) table(m nft.Message) error {
	family, name, _ := strings.Cut(m.Table(unix.NFTA_TABLE_NAME), " ")
	flags := m.Attributes().Number(unix.NFTA_TABLE_FLAGS)
	isNative := bases[name] == nil || family != "ip" && family != "ip6"
	r.tables[name] = &Table{
		Backend: detect.NFT, Native: isNative, Family: family, Name: name, Dormant: flags&1 != 0, Owned: flags&2 != 0,
	}
	return nil
}

// chain decodes NFT_MSG_NEWCHAIN. Only base chains have a type, a hook and a policy.
//
//	NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TYPE   string
//	NFTA_CHAIN_POLICY   __be32: NF_DROP 0, NF_ACCEPT 1
//	NFTA_CHAIN_HOOK     nested: NFTA_HOOK_HOOKNUM __be32, NFTA_HOOK_PRIORITY __be32, signed
func (r *reader) chain(m nft.Message) error {
	a := m.Attributes()
	t, name := r.tables[a.String(unix.NFTA_CHAIN_TABLE)], a.String(unix.NFTA_CHAIN_NAME)
	if t == nil {
		return nil
	}
	hook := a.Find(unix.NFTA_CHAIN_HOOK)
	is := Hook{Type: a.String(unix.NFTA_CHAIN_TYPE), Priority: int(int32(hook.Number(unix.NFTA_HOOK_PRIORITY)))}
	if hook != nil {
		is.Hook = hookName(r.family, hook.Number(unix.NFTA_HOOK_HOOKNUM))
	}
	priority, isBase := bases[t.Name][name]
	want := Hook{Hook: strings.ToLower(name), Type: "filter", Priority: priority}
	switch {
	case t.Name == "nat":
		want.Type = "nat"
	case t.Name == "mangle" && name == "OUTPUT":
		want.Type = "route"
	}
	switch {
	case t.Native:
		name = is.Hook
	case !isBase:
		t.Chains = note(t.Chains, name)
	case is != want:
		t.Wrong = note(t.Wrong, BaseChain{Chain: name, Is: is, Want: want})
	}
	if a.Find(unix.NFTA_CHAIN_POLICY) != nil && a.Number(unix.NFTA_CHAIN_POLICY) == 0 {
		t.Policies = note(t.Policies, Policy{Chain: name, Policy: "DROP"})
	}
	return nil
}

// hookName names one of enum nf_inet_hooks, of enum nf_dev_hooks, or of NF_ARP_IN and the like, as nft does.
func hookName(family uint8, number uint32) string {
	names := []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}
	switch family {
	case unix.NFPROTO_NETDEV:
		names = []string{"ingress", "egress"}
	case unix.NFPROTO_ARP:
		names = []string{"input", "output", "forward"}
	}
	if int64(number) >= int64(len(names)) {
		return fmt.Sprint("number ", number)
	}
	return names[number]
}

// rule decodes NFT_MSG_NEWRULE. A rule without a counter, or with an expression that iptables never makes, is nft's.
//
//	NFTA_RULE_CHAIN         string
//	NFTA_RULE_EXPRESSIONS   nested: a row of NFTA_LIST_ELEM, each nested:
//		NFTA_EXPR_NAME  string
//		NFTA_EXPR_DATA  nested, as the name has it
func (t *Table) rule(m nft.Message) error {
	t.Rules++
	if t.Native {
		return nil
	}
	chain := m.Attributes().String(unix.NFTA_RULE_CHAIN)
	leads, hasEffect, hasCounter, isForeign := "", false, false, false
	for list := m.Attributes().Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var e nft.Attributes
		e, list = list.Next()
		name, data := e.String(unix.NFTA_EXPR_NAME), e.Find(unix.NFTA_EXPR_DATA)
		to, does := effect(name, data)
		leads, hasEffect = cmp.Or(leads, to), hasEffect || does
		hasCounter = hasCounter || name == "counter"
		isForeign = isForeign || !slices.Contains(made, name)
	}
	t.count(cmp.Or(leads, chain), hasEffect)
	if isForeign || !hasCounter {
		t.NFTMade++
		t.MadeIn = note(t.MadeIn, chain)
	}
	return nil
}

// effect returns the chain to which an expression leads, and whether it drops or redirects.
//
//	NFTA_VERDICT_CODE   __be32: NF_DROP 0, NF_QUEUE 3
//	NFTA_NAT_TYPE       __be32: NFT_NAT_SNAT 0, NFT_NAT_DNAT 1
//	NFTA_QUEUE_FLAGS    __be16: NFT_QUEUE_FLAG_BYPASS 1
func effect(name string, data nft.Attributes) (leads string, does bool) {
	switch name {
	case "immediate":
		verdict := data.Find(unix.NFTA_IMMEDIATE_DATA).Find(unix.NFTA_DATA_VERDICT)
		code := verdict.Number(unix.NFTA_VERDICT_CODE)
		return verdict.String(unix.NFTA_VERDICT_CHAIN), verdict != nil && (code == 0 || code == 3)
	case "target":
		target, revision := data.String(unix.NFTA_TARGET_NAME), data.Number(unix.NFTA_TARGET_REV)
		return "", acts(target, int(revision), data.Find(unix.NFTA_TARGET_INFO))
	case "nat":
		return "", data.Number(unix.NFTA_NAT_TYPE) == unix.NFT_NAT_DNAT
	case "queue":
		flags := data.Find(unix.NFTA_QUEUE_FLAGS)
		return "", len(flags) != 2 || flags[1]&unix.NFT_QUEUE_FLAG_BYPASS == 0
	}
	return "", name == "reject" || name == "redir" || name == "tproxy"
}
