// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// readLegacy asks x_tables for all tables that exist, by family.
func readLegacy(listed [2][]string) (c contents) {
	c.whole = true
	for i, names := range listed {
		for _, name := range names {
			family := detect.Family(i)
			chains, err := readChains(family == detect.IPv6, name)
			if err != nil {
				c.whole = false
				continue
			}
			t := newTable(family, name)
			for _, from := range chains {
				to := t.chain(from.Name)
				to.base = from.BuiltIn
				to.drops = from.BuiltIn && from.Policy != "ACCEPT"
				for _, rule := range from.Rules {
					to.targets = append(to.targets, c.legacyTarget(family, rule))
				}
			}
			c.tables = append(c.tables, t)
		}
	}
	return c
}

// readChains tries again while the table changes.
func readChains(ipv6 bool, name string) (chains []xtables.Chain, err error) {
	const tries = 3
	for range tries {
		chains, err = xtables.ReadChains(ipv6, name)
		if !errors.Is(err, xtables.ErrChanged) {
			break
		}
	}
	return chains, err
}

// legacyTarget is the target of a rule. It notes the extensions that the rule uses.
func (c *contents) legacyTarget(f detect.Family, rule xtables.Rule) string {
	for _, match := range rule.Matches {
		c.use(f, "-m "+match)
	}
	if rule.Extension {
		c.use(f, "-j "+rule.Target)
	}
	if rule.Bypass {
		return harmless
	}
	return rule.Target
}
