// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"maps"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// What is in the kernel, of either backend.

// contents is what one backend has in iptables' tables.
type contents struct {
	tables []table
	native []Native           // nf_tables only
	uses   [2]map[string]bool // by family: the extensions that rules use, as iptables' arguments: "-m set", "-j MARK"
	whole  bool               // all of it was read
}

// table is one of iptables' tables.
type table struct {
	family detect.Family
	name   string
	chains map[string]*chain
}

// String names the table as nft does: "ip filter".
func (t table) String() string { return [...]string{"ip ", "ip6 "}[t.family] + t.name }

// chain is a chain of a table.
type chain struct {
	base    bool     // packets enter it
	drops   bool     // its policy is not ACCEPT
	targets []string // of its rules, "" for none
	native  bool     // nft has made one of its rules, and iptables may list that without a condition
}

// harmless is the target of a rule that lets packets pass while nobody is there to decide about them.
const harmless = "NFQUEUE --queue-bypass"

func newTable(family detect.Family, name string) table {
	return table{family: family, name: name, chains: map[string]*chain{}}
}

// chain returns the chain of a name, a new one if there is none.
func (t table) chain(name string) *chain {
	if t.chains[name] == nil {
		t.chains[name] = &chain{}
	}
	return t.chains[name]
}

// sorted are the names of the chains of which something is true.
func (t table) sorted(is func(*chain) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(t.chains)) {
		if is(t.chains[name]) {
			names = append(names, name)
		}
	}
	return names
}

// reached are the chains that a packet can reach: the base chains, and those to which rules there lead.
func (t table) reached() map[string]bool {
	reached := map[string]bool{}
	next := t.sorted(func(c *chain) bool { return c.base })
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

// use notes that a rule uses an extension.
func (c *contents) use(f detect.Family, extension string) {
	if c.uses[f] == nil {
		c.uses[f] = map[string]bool{}
	}
	c.uses[f][extension] = true
}

// isEmpty reports whether the backend is known to have no rule, and no policy but ACCEPT.
func (c *contents) isEmpty() bool {
	for _, t := range c.tables {
		has := t.sorted(func(c *chain) bool { return c.drops || len(c.targets) > 0 })
		if len(has) > 0 {
			return false
		}
	}
	return c.whole
}

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
