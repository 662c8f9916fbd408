// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// What is in the kernel, of either backend.

// contents is what one backend has.
type contents struct {
	tables []iptables.Table
	native []nft.Native // nf_tables only
	whole  bool         // all of it was read
}

// readNFT asks nf_tables for all tables, chains and rules. What was read before an error counts.
func readNFT() (c contents) {
	err := repeat(func() error {
		all, err := nft.ReadRuleset()
		c.tables, c.native = all.Tables, all.Native
		return err
	})
	c.whole = err == nil
	return c
}

// readLegacy asks x_tables for all tables that exist, by family.
func readLegacy(listed [2][]string) contents {
	c := contents{whole: true}
	for family, names := range listed {
		for _, name := range names {
			err := repeat(func() error {
				t, err := xtables.ReadChains(family == int(detect.IPv6), name)
				if err == nil {
					c.tables = append(c.tables, t)
				}
				return err
			})
			c.whole = c.whole && err == nil
		}
	}
	return c
}

// repeat reads again what has changed while it was read.
func repeat(read func() error) (err error) {
	const tries = 3
	for range tries {
		err = read()
		if !errors.Is(err, iptables.ErrChanged) && !errors.Is(err, iptables.ErrChanged) {
			break
		}
	}
	return err
}

// isEmpty reports whether the backend is known to have no rule, and no policy but ACCEPT.
func (c contents) isEmpty() bool {
	for _, t := range c.tables {
		if slices.ContainsFunc(t.Chains, func(c iptables.Chain) bool { return c.Drops || len(c.Rules) > 0 }) {
			return false
		}
	}
	return c.whole
}

// uses are the extensions that the rules of a family use, as iptables' arguments: "-m set".
func (c contents) uses(ipv6 bool) map[string]bool {
	all := map[string]bool{}
	for _, t := range c.tables {
		if t.IPv6 != ipv6 {
			continue
		}
		for _, chain := range t.Chains {
			for _, rule := range chain.Rules {
				for _, extension := range rule.Uses {
					all[extension] = true
				}
			}
		}
	}
	return all
}

// nativeChains are the chains of a table in which nft has made a rule.
func nativeChains(t iptables.Table) (names []string) {
	for _, c := range t.Chains {
		if slices.ContainsFunc(c.Rules, func(r iptables.Rule) bool { return r.Native }) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// reached are the chains that a packet can reach: the base chains, and those to which rules there lead.
func reached(t iptables.Table) map[string]bool {
	chains := map[string]iptables.Chain{}
	var next []string
	for _, c := range t.Chains {
		chains[c.Name] = c
		if c.Base {
			next = append(next, c.Name)
		}
	}
	reached := map[string]bool{}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		c, known := chains[name]
		if known && !reached[name] {
			reached[name] = true
			for _, rule := range c.Rules {
				next = append(next, rule.Target)
			}
		}
	}
	return reached
}
