// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// firstRules is how many rules of a table are examined for what iptables-nft cannot print. As many are read at first; where too
// few of them have a match or target, the table's chains say whether its rules are iptables'.
const firstRules = 256

// fewRules is how many rules are looked for in small parts of a dump.
const fewRules = 8

// tableRules is what a dump says of the rules of one table.
type tableRules struct {
	Count
	seen    int          // the best estimate: with those that came after a change
	nftOnly string       // the chain of a rule that iptables-nft cannot print, "" if none was seen
	xt      []chainRules // rules with a match or target
	certain int          // those of xt that are known to be in a chain of iptables
}

type chainRules struct {
	chain string
	rules int
}

// until is where the reading of a dump may end, at the first of three numbers.
type until struct {
	messages int // rules of all tables
	rules    int // rules of the five tables
	xt       int // rules with a match or target
}

// ruleDump is a dump of rules, as far as it was read.
type ruleDump struct {
	tables  [len(tableNames)]tableRules // without upper bounds
	read    until
	ended   bool // it was read to its end
	changed bool // the rules changed while it was read
}

// add counts a rule of one of the five tables. The lower bounds are what was there before a change, all at once.
func (d *ruleDump) add(i int, m message) error {
	t := &d.tables[i]
	t.seen++
	d.read.rules++
	if !d.changed {
		t.Min++
	}
	xt, nftOnly, err := m.expressions()
	if err != nil || !xt && !nftOnly {
		return err
	}
	name, err := m.attribute(unix.NFTA_RULE_CHAIN)
	if err != nil {
		return err
	}
	chain := cString(name)
	if nftOnly && t.nftOnly == "" && t.seen <= firstRules {
		t.nftOnly = string(chain)
	}
	if xt && !d.changed {
		d.read.xt++
		if last := len(t.xt) - 1; last < 0 || t.xt[last].chain != string(chain) { // they come chain by chain
			t.xt = append(t.xt, chainRules{chain: string(chain)})
		}
		t.xt[len(t.xt)-1].rules++
	}
	return nil
}

// enough reports whether reading may end. What changes is read twice as far, for an estimate that is worth something.
func (d *ruleDump) enough(u until) bool {
	if d.changed {
		return d.read.messages/2 >= u.messages || d.read.rules/2 >= u.rules
	}
	return d.read.messages >= u.messages || d.read.rules >= u.rules || d.read.xt >= u.xt
}

// take counts a message of a dump, of one table if that is named.
func (d *ruleDump) take(m message, f Family, table string) error {
	name, err := m.attribute(unix.NFTA_RULE_TABLE)
	if err != nil {
		return err
	}
	if m.body[0] != f.nfproto() {
		return errWrongObject
	}
	d.changed = d.changed || m.flags&unix.NLM_F_DUMP_INTR != 0
	i := slices.Index(tableNames[:], string(cString(name)))
	if table != "" && (i < 0 || tableNames[i] != table) {
		return nil // Linux before 4.12 dumps all tables even if one is named
	}
	d.read.messages++
	if i < 0 {
		return nil
	}
	return d.add(i, m)
}

// readRules streams a dump of the rules of one table, or of the whole family if none is named, in a buffer that does not grow.
//
// Not counted, here as in iptables-nft-save, is what follows a rule of more than 32 KiB: the kernel ends the dump there
// and says nothing.
func (s *nftSocket) readRules(f Family, table string, end until) (d ruleDump, err error) {
	var which attributes
	if table != "" {
		which = which.text(unix.NFTA_RULE_TABLE, table)
	}
	for m, err := range s.ask(nftKind(unix.NFT_MSG_GETRULE), unix.NLM_F_DUMP, f.nfproto(), which, nftKind(unix.NFT_MSG_NEWRULE)) {
		if err == nil {
			err = d.take(m, f, table)
		}
		switch {
		case err != nil:
			return d, err
		case d.enough(end) && d.changed:
			return d, errInterrupted
		case d.enough(end):
			return d, nil
		}
	}
	d.ended = true
	return d, nil
}

// dumps are the attempts to read the same, where it keeps changing.
type dumps struct {
	best    ruleDump                // the one that saw most at once, or saw no change
	seen    [len(tableNames)]int    // the most that one saw of a table, for an estimate
	nftOnly [len(tableNames)]string // even if it is gone at the next attempt
}

func (a *dumps) add(d ruleDump, err error) {
	for i, t := range d.tables {
		a.nftOnly[i], a.seen[i] = cmp.Or(a.nftOnly[i], t.nftOnly), max(a.seen[i], t.seen)
	}
	if err == nil || d.atOnce() >= a.best.atOnce() {
		a.best = d
	}
}

// tables is what the attempts say together, given the error of the last one.
func (a *dumps) tables(err error) [len(tableNames)]tableRules {
	all := a.best.tables
	for i := range all {
		t := &all[i]
		t.nftOnly = a.nftOnly[i]
		if t.Max = t.Min; err != nil || !a.best.ended {
			t.Max = Unbounded
		}
		if err != nil {
			t.seen = a.seen[i]
		}
	}
	return all
}

// atOnce is how many rules there were at one instant.
func (d *ruleDump) atOnce() (n int) {
	for _, t := range d.tables {
		n += t.Min
	}
	return n
}

// rules counts the rules of one table, or of all five if none is named.
//
// The kernel prepares each part of a dump in advance, two of them for the first that is read. So a few rules are first looked for
// in small parts, which saves a third of a millisecond where the host has a hundred. What is not found there may still exist.
func (s *nftSocket) rules(f Family, table string, end until) ([len(tableNames)]tableRules, error) {
	var attempts dumps
	if !s.whole && end.xt <= fewRules {
		if d, err := s.readRules(f, table, end); err == nil && d.read.xt >= end.xt {
			attempts.add(d, nil)
			return attempts.tables(nil), nil
		}
	}
	err := retryChanged(func() error {
		if err := s.warmUp(f); err != nil {
			return err
		}
		d, err := s.readRules(f, table, end)
		attempts.add(d, err)
		return err
	})
	if absent(err) {
		return [len(tableNames)]tableRules{}, nil
	}
	all := attempts.tables(err)
	if err != nil {
		err = fmt.Errorf("count the rules of nf_tables: %w", err)
	}
	return all, err
}
