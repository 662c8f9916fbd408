// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"slices"
)

// compareUnlessDecided counts rules where no program of the host has decided. Nftables' own tables are certain evidence
// only if legacy has no rules. No guess is made before legacy's tables were searched for names, even where they are too
// large to be searched first: such a name can overturn it.
func (p *prober) compareUnlessDecided() {
	decided := p.row()
	if decided.reason == HostProgram {
		p.searchLegacyUnlessCertain()
		decided = p.row()
	}
	if decided.reason == HostProgram && decided.mode == NFT && !p.found(hasHostChain) {
		p.countLegacy(false)
		decided = p.row()
	}
	if decided.reason == HostProgram && (decided.conclusive || p.found(hasHostChain)) {
		return
	}
	p.compareRules()
	p.searchLegacyUnlessCertain()
}

// searchLegacyUnlessCertain looks for programs of the host in legacy's tables if these were too large to be searched
// first, and the answer is a guess. A certain one stays the same.
func (p *prober) searchLegacyUnlessCertain() {
	_, legacy := p.query.backends(p.evidence)
	if legacy.hostChain == Unknown && !p.row().conclusive {
		p.askLegacyPrograms(p.most.table)
	}
}

// compareRules counts until it is known which backend has more rules, by the cheapest questions first. What they cost
// does not depend on how much the host has, unless both backends have many rules, or none of nft's first rules shows
// who made it.
func (p *prober) compareRules() {
	p.countLegacy(false)
	if p.legacyRules().Max == Unbounded {
		p.countLegacy(true) // nothing will be certain, so what can be read is counted for the guess
	}
	if !p.settled() {
		p.lookAtNFT(p.enough())
	}
	if !p.settled() {
		p.countNFT(p.enough())
	}
	if !p.settled() {
		p.countLegacy(true)
	}
}

func (p *prober) nftRules() Count    { return p.evidence[0].Rules.plus(p.evidence[1].Rules) }
func (p *prober) legacyRules() Count { return p.evidence[2].Rules.plus(p.evidence[3].Rules) }

// enough is how many rules nft needs: as many as legacy, because nft wins a tie. For a guess it is twice as many,
// because a guess is remembered only then.
func (p *prober) enough() int {
	legacy := p.legacyRules()
	switch {
	case legacy.Max == Unbounded:
		return 2 * max(legacy.Min, 1)
	default:
		return max(legacy.Max, 1)
	}
}

// settled reports whether more questions would be in vain.
func (p *prober) settled() bool {
	nft := p.nftRules()
	legacy := p.legacyRules()
	nftHasMost := nft.Min >= p.enough()
	legacyHasMore := legacy.Min > nft.Max
	bothAreKnown := nft.Min == nft.Max && legacy.Min == legacy.Max
	return nftHasMost || legacyHasMore || bothAreKnown
}

// countLegacy counts the rules in the tables of both families, exactly or by bounds.
func (p *prober) countLegacy(exact bool) {
	for i := range families {
		e := &p.evidence[2+i]
		probe := &p.legacy[i]
		if probe.err != nil {
			continue
		}
		e.Rules = exactly(0)
		e.Estimate = 0
		e.Tables = nil
		for _, name := range tableNames {
			if !slices.Contains(probe.tables, name) {
				continue
			}
			t, err := probe.count(name, exact, p.query.Everything)
			e.fail(err)
			e.Rules = e.Rules.plus(t.Rules)
			if p.query.Everything {
				e.Tables = append(e.Tables, t)
			}
		}
		if e.Err != nil && e.Rules.Max != Unbounded {
			e.Estimate = e.Rules.Max
		}
	}
}

// count reads the header of a table, and its entries if the number of rules must be exact and the header does not say
// it, or if the chains are wanted. Beside an error there is what is known.
func (p *legacyProbe) count(table string, exact, chains bool) (Table, error) {
	counted := Table{Name: table, Rules: Count{0, Unbounded}}
	info, err := p.info(table)
	if err != nil {
		return counted, fmt.Errorf("read the header of legacy table %q: %w", table, err)
	}
	counted.Rules = info.bound(p.family)
	if !chains && !(exact && counted.Rules.Min < counted.Rules.Max) {
		return counted, nil
	}
	t, err := p.entries(table)
	if err != nil {
		return counted, err
	}
	if p.searched == nil { // few calls come here
		p.searched = map[string][]Program{}
	}
	p.searched[table] = t.programs(p.family, table)
	counted.Rules = exactly(t.rules)
	for _, name := range t.chains {
		counted.Chains = append(counted.Chains, string(name))
	}
	return counted, nil
}

// nftCount is what is known of the rules of one family.
type nftCount struct {
	rules  [len(tableNames)]tableRules
	chains [len(tableNames)]nftTable
	listed bool // chains are all that there are
}

// lookAtNFT reads the first rules. If enough have a match or target, it asks whether iptables made them.
func (p *prober) lookAtNFT(enough int) {
	for i := range families {
		n := &p.counted[i]
		left := enough - p.nftRules().Min
		if left <= 0 {
			return
		}
		p.readRules(i, "", limit{left, firstRules})
		for j, name := range tableNames {
			if n.rules[j].Max == Unbounded && n.xt() < left { // the first rules are not all
				p.readRules(i, name, limit{left, Unbounded})
			}
		}
		if n.xt() >= left {
			p.certify(i, left)
		}
		p.tellNFT(i)
	}
}

// countNFT lists the chains, which show whether somebody else uses a table. Where that is not enough, it counts rules
// until there are enough.
func (p *prober) countNFT(enough int) {
	for i, f := range families {
		if p.nftRules().Min >= enough {
			return
		}
		n := &p.counted[i]
		var err error
		n.chains, err = p.nft.tables(f)
		n.listed = err == nil
		p.evidence[i].fail(err)
		p.tellNFT(i)
		if p.nftRules().Min < enough && n.more() {
			p.readRules(i, "", limit{max(enough, firstRules), Unbounded})
			p.tellNFT(i)
		}
	}
}

// readRules reads rules of one family, and of one table if that is named.
//
// While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table before its successor,
// and a dump that names a table ends after the first of that name: no rules, and no error (nf_tables_dump_rules). So
// only a dump that names none can show that a table has no rules.
func (p *prober) readRules(i int, table string, end limit) {
	all, err := p.nft.rules(families[i], table, end)
	p.evidence[i].fail(err)
	for j, t := range all {
		if t.seen > 0 || table == "" && err == nil {
			p.counted[i].rules[j] = t
		}
	}
}

// certify asks for the chains of rules with a match or target, until enough of these are in chains of iptables.
func (p *prober) certify(i, enough int) {
	for j, name := range tableNames {
		for k := range p.counted[i].rules[j].xt {
			c := &p.counted[i].rules[j].xt[k]
			if enough <= 0 {
				return
			}
			var err error
			c.ours, err = p.nft.ofIptables(families[i], name, c.chain)
			p.evidence[i].fail(err)
			if c.ours {
				enough -= c.rules
			}
		}
	}
}

// tellNFT puts what was counted into the evidence.
func (p *prober) tellNFT(i int) {
	e := &p.evidence[i]
	n := &p.counted[i]
	likely := 0
	e.Rules = exactly(0)
	e.Estimate = 0
	e.Foreign = nil
	e.Tables = nil
	for j, name := range tableNames {
		t := n.rules[j]
		if n.listed && !n.chains[j].exists && t.seen == 0 {
			continue
		}
		foreign := n.foreign(j)
		best := t.seen
		if t.Max == Unbounded {
			best = max(best, n.chains[j].likely)
		}
		if !n.listed || len(foreign) > 0 {
			t.Min = n.certain(j)
		}
		if len(foreign) > 0 {
			best = t.Min
		}
		likely += best
		e.Rules = e.Rules.plus(t.Count)
		e.Foreign = append(e.Foreign, foreign...)
		if p.query.Everything && (n.chains[j].exists || t.seen > 0) {
			e.Tables = append(e.Tables, Table{name, t.Count, n.chains[j].users})
		}
	}
	if e.Err != nil && likely > e.Rules.Min {
		e.Estimate = likely
	}
}

// certain is how many rules of a table have a match or target and are in a chain of iptables.
func (n *nftCount) certain(j int) (rules int) {
	for _, c := range n.rules[j].xt {
		if c.ours || n.listed && !slices.Contains(n.chains[j].foreign, Chain{tableNames[j], c.chain}) {
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
	all := n.chains[j].foreign
	chain := Chain{tableNames[j], n.rules[j].nftOnly}
	if chain.Name == "" || slices.Contains(all, chain) {
		return all
	}
	return append(slices.Clip(all), chain)
}

// more reports whether a table of iptables may have rules that were not read and would count.
func (n *nftCount) more() bool {
	for j, t := range n.chains {
		mayExist := t.exists || !n.listed
		notAllRead := n.rules[j].Max == Unbounded
		wouldCount := n.rules[j].seen < firstRules || len(n.foreign(j)) == 0
		if mayExist && notAllRead && wouldCount {
			return true
		}
	}
	return false
}
