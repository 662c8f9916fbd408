// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
	"github.com/iptables-wrappers/iptables-wrappers/test/oracle"
)

// asDecided is the result of a situation in which the oracle decides what is expected.
const asDecided = "the host's backend"

// decided is a situation on a host that a script makes: a client adds rules, and they must be where the oracle says,
// which is told what nft and iptables-legacy list.
func decided(name, script string) situation {
	return situation{group: "host", name: name, want: asDecided, run: func(c *container) string {
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
	var l host.Listed
	c.sh(`nft -j list ruleset >ruleset`)
	err := l.ByNFT(c.read("ruleset"))
	if err != nil {
		fail(err)
	}
	return seen(l)
}

// ofLegacy is what iptables-legacy-save prints, which makes no table.
func (c *container) ofLegacy() oracle.Backend {
	var l host.Listed
	for _, family := range []string{"ip", "ip6"} {
		c.sh(family + `tables-legacy-save >saved`)
		l.BySave(family, c.read("saved"))
	}
	return seen(l)
}

// seen tells the oracle of a backend in the kernel what is listed.
func seen(l host.Listed) oracle.Backend {
	b := oracle.Backend{InKernel: oracle.Yes, Rules: l.Rules}
	for _, name := range l.Names {
		family, rest, _ := strings.Cut(name, " ")
		isChain := strings.Contains(rest, " ")
		switch {
		case !isChain:
			b.See(name, familiesOf[family]...)
		case family != "inet": // that one's are none of iptables
			b.See(rest, familiesOf[family]...)
		}
	}
	return b
}
