// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/test/oracle"
)

// asDecided is the result of a situation in which the oracle decides what is expected.
const asDecided = "the host's backend"

// decided is a situation on a host that a script makes: a client adds rules, and they must be where the oracle says,
// which is told what nft and iptables-legacy list.
func decided(group, name, script string) situation {
	return situation{group: group, name: name, want: asDecided, run: func(c *container) string {
		c.sh(script)
		want := oracle.Decide(c.witness(), "").Backend
		got := c.sh("client")
		if got != want {
			return fmt.Sprintf("%s, and the host's is %s", got, want)
		}
		return asDecided
	}}
}

// witness returns what the host has.
func (c *container) witness() *oracle.Host {
	h := &oracle.Host{TakesRules: oracle.Yes}
	h.NFT = c.ofNFT()
	h.Legacy = c.ofLegacy()
	return h
}

var familiesOf = map[string][]int{
	"ip":   {oracle.IPv4},
	"ip6":  {oracle.IPv6},
	"inet": {oracle.IPv4, oracle.IPv6},
}

// ofNFT is what nft lists.
func (c *container) ofNFT() oracle.Backend {
	b := oracle.Backend{InKernel: oracle.Yes}
	type object struct{ Family, Table, Name string }
	var ruleset struct {
		NFTables []struct{ Table, Chain, Rule *object }
	}
	c.sh(`nft -j list ruleset >ruleset`)
	err := json.Unmarshal([]byte(c.read("ruleset")), &ruleset)
	if err != nil {
		fail(err)
	}
	for _, o := range ruleset.NFTables {
		switch {
		case o.Table != nil:
			b.See(o.Table.Family+" "+o.Table.Name, familiesOf[o.Table.Family]...)
		case o.Chain != nil && o.Chain.Family != "inet":
			b.See(o.Chain.Table+" "+o.Chain.Name, familiesOf[o.Chain.Family]...)
		case o.Rule != nil && familiesOf[o.Rule.Family] != nil:
			b.Rules++
		}
	}
	return b
}

// ofLegacy is what iptables-legacy-save prints, which makes no table.
func (c *container) ofLegacy() oracle.Backend {
	b := oracle.Backend{InKernel: oracle.Yes}
	for family, tables := range []string{"iptables", "ip6tables"} {
		c.sh(tables + `-legacy-save >saved`)
		table := ""
		for line := range strings.Lines(c.read("saved")) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch line[0] {
			case '*':
				table = word[1:]
			case ':':
				b.See(table+" "+word[1:], family)
			case '-':
				b.Rules++
			}
		}
	}
	return b
}
