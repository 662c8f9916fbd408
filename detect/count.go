// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"slices"
)

// smallTables is how many rules legacy may have for its entries to be read before nft's chains.
const smallTables = 1000

// compareRules counts until it is known which backend has more rules, by the cheapest questions first. What they cost does not
// depend on how much the host has, unless both backends have many rules, or none of nft's first rules shows who made it.
func (p *prober) compareRules(guessed bool) {
	for _, ask := range []func(enough int){
		func(int) {
			if p.countLegacy(false); p.legacyRules().Max == Unbounded {
				p.countLegacy(true) // nothing will be certain, so what can be read is counted for the guess
			}
		},
		p.lookAtNFT,
		func(int) {
			if p.legacyRules().Max <= smallTables {
				p.countLegacy(true)
			}
		},
		p.countNFT,
		func(int) { p.countLegacy(true) },
	} {
		if ask(p.enough(guessed)); p.settled(guessed) {
			return
		}
	}
}

func (p *prober) nftRules() Count    { return p.evidence[0].Rules.plus(p.evidence[1].Rules) }
func (p *prober) legacyRules() Count { return p.evidence[2].Rules.plus(p.evidence[3].Rules) }

// enough is how many rules nft needs: as many as legacy, because nft wins a tie. For a guess it is twice as many, because a guess
// is remembered only then.
func (p *prober) enough(guessed bool) int {
	legacy := p.legacyRules()
	if legacy.Max == Unbounded {
		return 2 * max(legacy.Min, 1)
	}
	if guessed {
		return 2 * max(legacy.Max, 1)
	}
	return max(legacy.Max, 1)
}

// settled reports whether more questions would be in vain.
func (p *prober) settled(guessed bool) bool {
	nft, legacy := p.nftRules(), p.legacyRules()
	return nft.Min >= p.enough(guessed) || legacy.Min > nft.Max && (!guessed || legacy.Min/2 >= nft.Max) ||
		nft.Min == nft.Max && legacy.Min == legacy.Max
}

// countLegacy counts the rules in the tables of both families, exactly or by bounds.
func (p *prober) countLegacy(exact bool) {
	for i := range families {
		e, probe := &p.evidence[2+i], &p.legacy[i]
		if probe.err != nil {
			continue
		}
		e.Rules, e.Estimate, e.Tables = exactly(0), 0, nil
		failed := false
		for _, name := range tableNames {
			if !slices.Contains(probe.tables, name) {
				continue
			}
			t, err := probe.count(name, exact, p.everything)
			e.fail(err)
			failed = failed || err != nil
			e.Rules = e.Rules.plus(t.Rules)
			if p.everything {
				e.Tables = append(e.Tables, t)
			}
		}
		if failed && e.Rules.Max != Unbounded {
			e.Estimate = e.Rules.Max
		}
	}
}

// count reads the header of a table, and its entries if the number of rules must be exact and the header does not say it, or if
// the chains are wanted. Beside an error there is what is known.
func (p *legacyProbe) count(table string, exact, chains bool) (Table, error) {
	counted := Table{Name: table, Rules: Count{0, Unbounded}}
	info, err := p.info(table)
	if err != nil {
		return counted, err
	}
	counted.Rules = info.bound(p.family)
	if !chains && !(exact && counted.Rules.Min < counted.Rules.Max) {
		return counted, nil
	}
	t, err := p.entries(table, info)
	if err != nil {
		return counted, err
	}
	counted.Rules = exactly(t.rules)
	for _, name := range t.chains {
		counted.Chains = append(counted.Chains, string(name))
	}
	return counted, nil
}
