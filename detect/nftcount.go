// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"slices"
)

// nftCount is what is known of the rules of one family.
type nftCount struct {
	rules   [len(tableNames)]tableRules
	chains  [len(tableNames)]nftTable
	listed  bool // chains are all that there are
	changed bool // something kept changing while it was read
}

func uncounted() *[2]nftCount {
	var n [2]nftCount
	for i := range n {
		for j := range tableNames {
			n[i].rules[j].Max = Unbounded
		}
	}
	return &n
}

func (p *prober) failNFT(i int, err error) {
	p.evidence[i].fail(err)
	p.counted[i].changed = p.counted[i].changed || errors.Is(err, errInterrupted)
}

// lookAtNFT reads the first rules. If enough have a match or target, it asks whether iptables made them.
func (p *prober) lookAtNFT(enough int) {
	p.counted = uncounted()
	end := until{firstRules + 2*enough, Unbounded, enough}
	xt := 0
	for i, f := range families {
		if xt >= enough {
			break
		}
		n := &p.counted[i]
		var err error
		n.rules, err = p.nft.rules(f, "", end)
		p.failNFT(i, err)
		for j := range tableNames {
			if err == nil && n.rules[j].Max == Unbounded && n.xt() < enough { // the first rules are not all
				p.readTable(i, j, end)
			}
		}
		xt += n.xt()
		p.tellNFT(i)
	}
	for i := range families {
		if left := enough - p.nftRules().Min; xt >= enough && left > 0 {
			p.certify(i, left)
			p.tellNFT(i)
		}
	}
}

// countNFT lists the chains, which show whether somebody else uses a table, and counts the rules of the others until there are
// enough. For everything, it counts all.
//
// While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table before its successor, and a dump
// that names a table ends after the first of that name: no rules, and no error (nf_tables_dump_rules). So only a dump that
// names none can show that a table has no rules.
func (p *prober) countNFT(enough int) {
	for i, f := range families {
		e, n := &p.evidence[i], &p.counted[i]
		need := enough - p.evidence[1-i].Rules.Min
		if need <= 0 {
			continue
		}
		var err error
		n.chains, err = p.nft.tables(f, p.everything)
		n.listed = err == nil
		p.failNFT(i, err)
		if p.everything {
			if err != nil || slices.ContainsFunc(n.chains[:], func(t nftTable) bool { return t.exists }) {
				n.rules, err = p.nft.rules(f, "", until{Unbounded, Unbounded, Unbounded})
				p.failNFT(i, err)
			}
			p.tellNFT(i)
			continue
		}
		for j, t := range n.chains {
			p.tellNFT(i)
			if e.Rules.Min >= need {
				break
			}
			if t.exists && n.rules[j].Max == Unbounded {
				limit := firstRules
				if len(n.foreign(j)) == 0 {
					limit = max(limit, need-e.Rules.Min+n.rules[j].Min) // which are read again
				}
				p.readTable(i, j, until{Unbounded, limit, Unbounded})
			}
		}
		if p.tellNFT(i); e.Rules.Min < need && n.empty() {
			all, err := p.nft.rules(f, "", until{Unbounded, need, Unbounded})
			p.failNFT(i, err)
			for j := range all {
				if n.rules[j].seen == 0 {
					n.rules[j] = all[j]
				}
			}
			p.tellNFT(i)
		}
	}
}

// readTable reads the rules of one table.
func (p *prober) readTable(i, j int, end until) {
	all, err := p.nft.rules(families[i], tableNames[j], end)
	p.failNFT(i, err)
	if all[j].seen > 0 {
		p.counted[i].rules[j] = all[j]
	}
}

// certify asks for the chains of rules with a match or target, until enough of these are in chains of iptables.
func (p *prober) certify(i, enough int) {
	for j, name := range tableNames {
		t := &p.counted[i].rules[j]
		t.certain = 0
		for _, c := range t.xt {
			if enough <= 0 {
				return
			}
			ours, err := p.nft.ofIptables(families[i], name, c.chain)
			p.failNFT(i, err)
			if ours {
				t.certain += c.rules
				enough -= c.rules
			}
		}
	}
}

// tellNFT puts what was counted into the evidence.
func (p *prober) tellNFT(i int) {
	e, n, likely := &p.evidence[i], &p.counted[i], 0
	e.Rules, e.Estimate, e.Foreign, e.Tables = exactly(0), 0, nil, nil
	for j, name := range tableNames {
		t, foreign := n.rules[j], n.foreign(j)
		if n.listed {
			t.certain = t.inChainsBut(n.chains[j].foreign)
		}
		best := t.seen
		if len(foreign) > 0 {
			best = t.certain
		}
		likely += best
		if n.listed && !n.chains[j].exists && t.seen == 0 {
			continue
		}
		count := t.Count
		if !n.listed || len(foreign) > 0 {
			count.Min = t.certain
		}
		e.Rules, e.Foreign = e.Rules.plus(count), append(e.Foreign, foreign...)
		if p.everything && (n.chains[j].exists || t.seen > 0) {
			e.Tables = append(e.Tables, Table{name, count, n.chains[j].users})
		}
	}
	if n.changed && likely > e.Rules.Min {
		e.Estimate = likely
	}
}

// inChainsBut counts the rules with a match or target that are not in one of these chains.
func (t tableRules) inChainsBut(foreign []Chain) (rules int) {
	for _, c := range t.xt {
		if !slices.ContainsFunc(foreign, func(f Chain) bool { return f.Name == c.chain }) {
			rules += c.rules
		}
	}
	return rules
}

// xt is how many rules have a match or target.
func (n *nftCount) xt() (rules int) {
	for _, t := range n.rules {
		for _, c := range t.xt {
			rules += c.rules
		}
	}
	return rules
}

// foreign are the chains because of which iptables-nft may print none of a table's rules.
func (n *nftCount) foreign(j int) []Chain {
	all, chain := n.chains[j].foreign, Chain{tableNames[j], n.rules[j].nftOnly}
	if chain.Name == "" || slices.Contains(all, chain) {
		return all
	}
	return append(slices.Clip(all), chain)
}

// empty reports whether a table has chains, and no rule was seen in it.
func (n *nftCount) empty() bool {
	for j, t := range n.chains {
		if t.exists && n.rules[j].seen == 0 && n.rules[j].Max != 0 {
			return true
		}
	}
	return false
}
