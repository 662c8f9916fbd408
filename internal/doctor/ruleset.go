// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
)

// table is one of iptables' tables, in either backend.
type table struct {
	family detect.Family
	name   string
	chains map[string]*chain
}

// String names the table as nft does: "ip filter".
func (t table) String() string { return [...]string{"ip ", "ip6 "}[t.family] + t.name }

// chain is a chain of a table.
type chain struct {
	base    bool
	policy  string   // of a base chain: "ACCEPT", "DROP"
	foreign bool     // a base chain of nf_tables that iptables-nft takes for somebody else's, and does not list
	targets []string // of its rules, "" for none
	listing listing  // the worst of its rules
}

// Native is a table of nf_tables that iptables does not use. Packets pass it, and iptables does not list it.
type Native struct {
	Table string `json:"table"` // "inet firewalld"
	Rules int    `json:"rules"`
}

// ruleset is all that nf_tables has.
type ruleset struct {
	tables []table
	native []Native
}

// tableNames are those of iptables.
var tableNames = []string{"filter", "nat", "mangle", "raw", "security"}

// readRuleset asks for all tables, chains and rules. What was read before an error is part of the ruleset.
func readRuleset() (r ruleset, err error) {
	const tries = 3       // of a ruleset that changes under way
	const most = 10 << 20 // objects, whatever somebody has put into the namespace
	conn := nft.Conn{Most: most}
	defer conn.Close()
	for range tries {
		r, err = readOnce(&conn)
		if !errors.Is(err, nft.ErrChanged) {
			break
		}
	}
	return r, err
}

func readOnce(conn *nft.Conn) (r ruleset, err error) {
	tables := map[string]*table{}
	native := map[string]*Native{}
	for _, question := range []struct {
		get  uint16
		each func(nft.Message)
	}{
		{unix.NFT_MSG_GETTABLE, func(m nft.Message) {
			name := m.Table(unix.NFTA_TABLE_NAME)
			t := newTable(m.Family(), m.Attributes().String(unix.NFTA_TABLE_NAME))
			if t != nil {
				tables[name] = t
			} else {
				native[name] = &Native{Table: name}
			}
		}},
		{unix.NFT_MSG_GETCHAIN, func(m nft.Message) {
			t := tables[m.Table(unix.NFTA_CHAIN_TABLE)]
			if t != nil {
				*t.chain(m.Attributes().String(unix.NFTA_CHAIN_NAME)) = chainOf(m.Attributes(), t.name)
			}
		}},
		{unix.NFT_MSG_GETRULE, func(m nft.Message) {
			t, n := tables[m.Table(unix.NFTA_RULE_TABLE)], native[m.Table(unix.NFTA_RULE_TABLE)]
			switch {
			case t != nil:
				t.chain(m.Attributes().String(unix.NFTA_RULE_CHAIN)).add(listingOf(m))
			case n != nil:
				n.Rules++
			}
		}},
	} {
		err = conn.Dump(question.get, unix.AF_UNSPEC, func(m nft.Message) error {
			question.each(m)
			return nil
		})
		if err != nil {
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tables)) {
		r.tables = append(r.tables, *tables[key])
	}
	for _, key := range slices.Sorted(maps.Keys(native)) {
		r.native = append(r.native, *native[key])
	}
	return r, err
}

// newTable returns a table of iptables, nil if iptables has no such table.
func newTable(family uint8, name string) *table {
	if !slices.Contains(tableNames, name) {
		return nil
	}
	switch family {
	case unix.NFPROTO_IPV4:
		return &table{family: detect.IPv4, name: name, chains: map[string]*chain{}}
	case unix.NFPROTO_IPV6:
		return &table{family: detect.IPv6, name: name, chains: map[string]*chain{}}
	}
	return nil
}

// chain returns the chain of a name, a new one if there is none.
func (t table) chain(name string) *chain {
	if t.chains[name] == nil {
		t.chains[name] = &chain{}
	}
	return t.chains[name]
}

func (c *chain) add(how listing, target string) {
	c.targets = append(c.targets, target)
	c.listing = max(c.listing, how)
}

// chainOf decodes NFT_MSG_NEWCHAIN. Only base chains have a type, a hook and a policy.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TYPE   string
//	NFTA_CHAIN_POLICY   __be32: NF_DROP 0, NF_ACCEPT 1
//	NFTA_CHAIN_HOOK     nested:
//		NFTA_HOOK_HOOKNUM   __be32
//		NFTA_HOOK_PRIORITY  __be32
func chainOf(a nft.Attributes, table string) chain {
	hook := a.Find(unix.NFTA_CHAIN_HOOK)
	if hook == nil {
		return chain{}
	}
	c := chain{base: true, policy: "ACCEPT"}
	if a.Find(unix.NFTA_CHAIN_POLICY) != nil && a.Number(unix.NFTA_CHAIN_POLICY) == 0 {
		c.policy = "DROP"
	}
	kind, number := a.String(unix.NFTA_CHAIN_TYPE), hook.Number(unix.NFTA_HOOK_HOOKNUM)
	priority := int32(hook.Number(unix.NFTA_HOOK_PRIORITY))
	c.foreign = !iptablesChain(table, a.String(unix.NFTA_CHAIN_NAME), kind, number, priority)
	return c
}

// hooks are those of iptables in the order of their numbers (enum nf_inet_hooks). A base chain has the name of its
// hook.
var hooks = []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// iptablesChain reports whether iptables-nft takes a base chain in one of its tables for its own.
func iptablesChain(table, name, kind string, hook uint32, priority int32) bool {
	wantKind, wantPriority, only := "filter", int32(0), hooks
	switch table {
	case "filter":
		only = hooks[1:4]
	case "raw":
		wantPriority, only = -300, []string{"PREROUTING", "OUTPUT"}
	case "mangle":
		wantPriority = -150
		if name == "OUTPUT" {
			wantKind = "route"
		}
	case "security":
		wantPriority, only = 150, hooks[1:4] // iptables-nft has always used this; NF_IP_PRI_SECURITY is 50
	case "nat":
		wantKind, wantPriority, only = "nat", -100, []string{"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}
		if name == "INPUT" || name == "POSTROUTING" {
			wantPriority = 100
		}
	}
	return int(hook) < len(hooks) && name == hooks[hook] && slices.Contains(only, name) && kind == wantKind &&
		priority == wantPriority
}

// quoted is an argument that may look like a target.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// parse reads what "iptables-save -t TABLE" prints:
//
//	*filter
//	:INPUT DROP [0:0]
//	:f2b-sshd - [0:0]
//	-A INPUT -p tcp -m comment --comment "a -j b" -j f2b-sshd
//	COMMIT
func parse(family detect.Family, name, saved string) table {
	t := table{family: family, name: name, chains: map[string]*chain{}}
	for line := range strings.Lines(saved) {
		words := strings.Fields(quoted.ReplaceAllString(line, `""`))
		switch {
		case len(words) >= 2 && strings.HasPrefix(words[0], ":"):
			c := t.chain(words[0][1:])
			c.base = words[1] != "-"
			c.policy = strings.TrimPrefix(words[1], "-")
		case len(words) >= 2 && words[0] == "-A":
			t.chain(words[1]).add(faithful, targetIn(words))
		}
	}
	return t
}

// targetIn is the word after -j or -g.
func targetIn(words []string) string {
	i := slices.IndexFunc(words, func(word string) bool { return word == "-j" || word == "-g" })
	if i < 0 || i == len(words)-1 {
		return ""
	}
	return words[i+1]
}

// reached are the chains that a packet can reach: the base chains, and those to which rules there lead.
func (t table) reached() map[string]bool {
	reached := map[string]bool{}
	var next []string
	for name, c := range t.chains {
		if c.base {
			next = append(next, name)
		}
	}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if t.chains[name] != nil && !reached[name] {
			reached[name] = true
			next = append(next, t.chains[name].targets...)
		}
	}
	return reached
}
