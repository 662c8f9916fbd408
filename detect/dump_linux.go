// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// firstRules is how many rules of a table are examined for what iptables-nft cannot print. As many of other tables are
// read at first, and more than as many of the five where they have no match or target.
const firstRules = 256

// fewRules is how many rules are looked for in small parts of a dump.
const fewRules = 8

// tableRules is what a dump says of the rules of one table.
type tableRules struct {
	Count
	seen    int          // the best estimate: with those that came after a change
	nftOnly string       // the chain of a rule that iptables-nft cannot print, "" if none was seen
	xt      []chainRules // rules with a match or target
}

type chainRules struct {
	chain string
	rules int
	ours  bool // it is known to be a chain of iptables
}

// uncounted is what is known of the five tables before a dump.
func uncounted() (tables [len(tableNames)]tableRules) {
	for i := range tables {
		tables[i].Max = Unbounded
	}
	return tables
}

// ruleDump is a dump of rules, as far as it was read.
type ruleDump struct {
	tables  [len(tableNames)]tableRules
	read    int  // rules of the five tables
	xt      int  // those with a match or target
	native  int  // rules of other tables
	changed bool // the rules changed while it was read
}

// add counts a rule of one of the five tables. The lower bounds are what was there before a change, all at once.
func (d *ruleDump) add(t *tableRules, m netlink.Message) {
	d.read++
	t.seen++
	if !d.changed {
		t.Min++
	}
	xt, nftOnly := parseExpressions(m)
	if !xt && !nftOnly {
		return
	}
	chain := cString(m.Attributes().Find(unix.NFTA_RULE_CHAIN))
	if nftOnly && t.nftOnly == "" && t.seen <= firstRules {
		t.nftOnly = string(chain)
	}
	if xt && !d.changed {
		d.xt++
		if last := len(t.xt) - 1; last < 0 || t.xt[last].chain != string(chain) { // they come chain by chain
			t.xt = append(t.xt, chainRules{chain: string(chain)})
		}
		t.xt[len(t.xt)-1].rules++
	}
}

// limit is where the reading of a dump may end.
type limit struct {
	rules  int // with a match or target; twice as many without, which is enough for an estimate
	native int // rules of other tables
}

func (d *ruleDump) reached(l limit) bool {
	return d.xt >= l.rules && !d.changed || (d.read-firstRules)/2 >= l.rules || d.native >= l.native
}

// take counts a message of a dump, of one table if that is named.
func (d *ruleDump) take(m netlink.Message, table string) {
	d.changed = d.changed || m.Flags&unix.NLM_F_DUMP_INTR != 0
	name := string(cString(m.Attributes().Find(unix.NFTA_RULE_TABLE)))
	switch i := slices.Index(tableNames[:], name); {
	case table != "" && table != name: // Linux before 4.12 dumps all tables even if one is named
	case i >= 0:
		d.add(&d.tables[i], m)
	default:
		d.native++
	}
}

// better reports whether a dump, which ended with the error, replaces an earlier one that a change has spoiled.
func (d *ruleDump) better(earlier ruleDump, err error) bool {
	return err == nil || d.read >= earlier.read
}

// readRules streams a dump of the rules of one table, or of the whole family if none is named, in a buffer that does
// not grow.
//
// Not counted, here as in iptables-nft-save, is what follows a rule of more than 32 KiB: the kernel ends the dump there
// and says nothing.
func (s *nftSocket) readRules(f Family, table string, end limit) (ruleDump, error) {
	d := ruleDump{tables: uncounted()}
	var which netlink.Attributes
	if table != "" {
		which = which.Text(unix.NFTA_RULE_TABLE, table)
	}
	err := s.dump(unix.NFT_MSG_GETRULE, &s.rulesLeft, f.nfproto(), which, func(m netlink.Message) error {
		d.take(m, table)
		switch {
		case !d.reached(end):
			return nil
		case d.changed:
			return errInterrupted
		default:
			return errEnough
		}
	})
	if err == nil && !d.reached(end) {
		for i := range d.tables {
			d.tables[i].Max = d.tables[i].Min
		}
	}
	return d, err
}

// rules counts the rules of one table, or of all five if none is named. Of several attempts it takes the one without a
// change, else the one that has seen most.
//
// The kernel prepares each part of a dump in advance, two of them for the first that is read. So a few rules are first
// looked for in small parts, which saves a third of a millisecond where the host has a hundred. What is not found there
// may still exist.
func (s *nftSocket) rules(f Family, table string, end limit) ([len(tableNames)]tableRules, error) {
	if end.rules <= fewRules && len(s.buf) < dumpBuffer {
		if d, err := s.readRules(f, table, end); err == nil && d.xt >= end.rules {
			return d.tables, nil
		}
	}
	best := ruleDump{tables: uncounted()}
	err := retryChanged(func() error {
		if err := s.warmUp(f); err != nil {
			return err
		}
		d, err := s.readRules(f, table, end)
		if d.better(best, err) {
			best = d
		}
		return err
	})
	if absent(err) {
		return [len(tableNames)]tableRules{}, nil
	}
	if err != nil {
		err = fmt.Errorf("count the rules of nf_tables: %w", err)
	}
	return best.tables, err
}
