// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// tableRules is what a dump says about the rules of one of the five tables.
type tableRules struct {
	rules   int
	xt      bool   // one has a match or target: only iptables-nft makes such
	foreign string // the chain of a rule that iptables-nft cannot print, "" if there is none
}

// ruleDump is a dump of the rules of one family, as far as it was read.
type ruleDump struct {
	tables [len(tableNames)]tableRules
	read   int
	all    bool // it was read to its end, and nothing changed meanwhile
}

// add counts a rule, and returns how many there are by now in tables that iptables-nft has certainly written to.
func (d *ruleDump) add(m netlink.Message) (certain int) {
	name := cString(m.Attributes().Find(unix.NFTA_RULE_TABLE))
	i := slices.Index(tableNames[:], string(name))
	if i < 0 {
		return 0
	}
	d.read++
	t := &d.tables[i]
	t.rules++
	xt, foreign := parseExpressions(m)
	t.xt = t.xt || xt
	if foreign && t.foreign == "" {
		t.foreign = string(cString(m.Attributes().Find(unix.NFTA_RULE_CHAIN)))
	}
	for _, t := range d.tables {
		if t.xt {
			certain += t.rules
		}
	}
	return certain
}

const (
	// firstRules is how many more rules than enough are read while none has a match or target.
	firstRules = 256

	// fewRules is up to how many rules are looked for in a dump with the small buffer first.
	fewRules = 8
)

// rules reads the rules of a family, until there are enough in tables that iptables-nft has certainly written to, or
// firstRules more than enough in any. Of several attempts, the one that has read most counts.
//
// The dump names no table. While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table
// before its successor. A dump that names a table ends after the first of that name, with no rules and no error
// (nf_tables_dump_rules). Rules after one of more than 32 KiB are not counted, as they are not by iptables-nft-save:
// the kernel silently ends the dump there.
func (p *nftProbe) rules(f Family, enough int) (ruleDump, error) {
	var d, best ruleDump
	stopped := false
	take := func(m netlink.Message) error {
		certain := d.add(m)
		stopped = certain >= enough || d.read-firstRules >= enough
		if stopped {
			return netlink.ErrEnough
		}
		return nil
	}
	if enough <= fewRules {
		if err := p.once(unix.NFT_MSG_GETRULE, f.nfproto(), take); err == nil && stopped {
			return d, nil
		}
		d = ruleDump{}
	}
	begin := func() error {
		if d.read > best.read {
			best = d
		}
		d = ruleDump{}
		return p.warmUp()
	}
	err := p.dump(unix.NFT_MSG_GETRULE, f.nfproto(), begin, take)
	if err == nil {
		d.all = !stopped
		return d, nil
	}
	if d.read > best.read {
		best = d
	}
	return best, fmt.Errorf("read the rules: %w", err)
}

// mayBeForeign reports whether the chains of a table could change how its rules count: none of these has a match or
// target, and without them there are not enough.
func (d *ruleDump) mayBeForeign(enough int) bool {
	certain, plain := 0, false
	for _, t := range d.tables {
		switch {
		case t.xt:
			certain += t.rules
		case t.rules > 0 && t.foreign == "":
			plain = true
		}
	}
	return plain && certain < enough
}

// judge returns whether iptables-nft has rules, how many were read, and which chains are not iptables' own. A table
// with such a chain is unknown, unless it has a rule that only iptables-nft makes.
func (d *ruleDump) judge(foreign []Chain, chainsKnown bool) (any Answer, count int, named []Chain) {
	any = No
	for i, name := range tableNames {
		t := d.tables[i]
		inTable := slices.IndexFunc(foreign, func(c Chain) bool { return c.Table == name })
		switch {
		case t.foreign != "":
			named = append(named, Chain{Table: name, Name: t.foreign})
		case inTable >= 0:
			named = append(named, foreign[inTable])
		}
		switch {
		case t.rules == 0 && d.all:
		case t.xt, t.rules > 0 && t.foreign == "" && inTable < 0 && chainsKnown:
			any = Yes
			count += t.rules
		default:
			any = either(any, Unknown)
		}
	}
	return any, count, named
}
