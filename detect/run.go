// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import "slices"

// Run answers the query. It never fails: what cannot be asked is Unknown in the evidence, with the error.
func (q Query) Run() Result {
	q = q.normalized()
	if q.Override != "" && !q.Everything {
		return q.result(unasked())
	}
	p := newProber()
	defer p.close()
	return p.run(q)
}

// prober asks the running kernel, and collects what it says.
type prober struct {
	nft        nftSocket
	legacy     [2]legacyProbe
	evidence   [4]Evidence // as in Result: nft's two families, then legacy's
	everything bool        // ask also what cannot change the answer, and list the tables

	// between, if set, is called between the questions. Tests change the host there.
	between func()
}

func newProber() *prober {
	return &prober{
		nft:      nftSocket{fd: -1},
		legacy:   [2]legacyProbe{newLegacyProbe(IPv4), newLegacyProbe(IPv6)},
		evidence: unasked(),
	}
}

func (p *prober) close() {
	p.nft.close()
	p.legacy[0].close()
	p.legacy[1].close()
}

// run asks what can still change the answer, or everything.
func (p *prober) run(q Query) Result {
	p.everything = q.Everything
	p.askHints()
	if p.everything || !p.found(hint) {
		p.askCanaries()
	}
	p.pause()
	kubelet := p.found(hint) || p.found(canary)
	if m := q.Remembered; m.Mode != "" && !m.Conclusive && (p.everything || !kubelet) {
		p.askExists(m.Mode)
	}
	switch {
	case p.everything:
		for i := range families {
			p.countNFT(i, Unbounded)
		}
		p.countLegacy(true)
	case !kubelet && decide(q.facts(p.evidence)).reason != Remembered:
		p.compareRules()
	}
	p.pause()

	// The questions were not asked at one instant, and kubelet may be starting: what outranks a lower row is asked
	// once more before that counts.
	if !p.found(hint) && (p.found(canary) || p.found(rules)) {
		p.askHints()
		if !p.found(hint) && p.evidence[0].Canary != Yes && p.evidence[1].Canary != Yes {
			p.askCanaries()
		}
	}
	if q.DryRun && (p.everything || decide(q.facts(p.evidence)).reason == Default) {
		p.dryRun(q.NAT)
	}
	r := q.result(p.evidence)
	r.unprivileged = permitted(p.nft.permitted, p.legacy[0].permitted, p.legacy[1].permitted) == No
	return r
}

// permitted is what the answers to questions that need CAP_NET_ADMIN say together: Yes if the kernel answered one, No if it
// refused each with EPERM.
func permitted(answers ...Answer) Answer { return slices.Max(answers) }

func (p *prober) pause() {
	if p.between != nil {
		p.between()
	}
}

func rules(e Evidence) bool { return e.Rules.Min > 0 }

// found reports whether something is known to be in any backend and family.
func (p *prober) found(what func(Evidence) bool) bool {
	return slices.ContainsFunc(p.evidence[:], what)
}

// askHints asks nft first, because its hint decides whatever legacy says. Legacy reports both chains at once.
func (p *prober) askHints() {
	if p.askNFT(HintChain, func(e *Evidence) *Answer { return &e.Hint }) {
		return
	}
	for i := range families {
		e := &p.evidence[2+i]
		e.Supported = p.legacy[i].list()
		hint, canary, err := p.legacy[i].kubelet()
		e.Hint = hint
		if e.Canary != Yes { // one that was there does not become less of a sign when kubelet renews it
			e.Canary = canary
		}
		e.fail(err)
		if hint == Yes && !p.everything {
			return
		}
	}
}

// askCanaries asks nft only. A canary in legacy is not the end of the questions, because one in nft outranks it.
func (p *prober) askCanaries() {
	p.askNFT(CanaryChain, func(e *Evidence) *Answer { return &e.Canary })
}

// askExists asks whether the backend has one of the five tables, in either family.
func (p *prober) askExists(m Mode) {
	for i, f := range families {
		if m == Legacy {
			e, probe := &p.evidence[2+i], &p.legacy[i]
			if e.exists = Unknown; probe.err == nil {
				e.exists = answer(slices.ContainsFunc(tableNames[:], func(name string) bool { return slices.Contains(probe.tables, name) }))
			}
			continue
		}
		e := &p.evidence[i]
		for _, name := range tableNames {
			var err error
			e.exists, err = p.nft.table(f, name)
			e.fail(err)
			if e.exists != No {
				return
			}
		}
	}
}

// askNFT asks for a chain in one family after the other, and reports whether that was enough.
func (p *prober) askNFT(chain string, to func(*Evidence) *Answer) (enough bool) {
	for i, f := range families {
		e := &p.evidence[i]
		answer, err := p.nft.chain(f, chain)
		*to(e), e.Supported = answer, p.nft.supported
		e.fail(err)
		if answer == Yes && !p.everything {
			return true
		}
	}
	return false
}

// compareRules counts until one backend is known to have more rules. Legacy is asked first, for the bounds that its
// table headers give at once; nft is streamed as far as needed; only if the bounds are too wide are legacy's entries
// read. Where a part of legacy cannot be read, nothing will be certain, and what can be read is counted for the guess.
func (p *prober) compareRules() {
	legacy := p.countLegacy(false)
	enough := legacy.Max // nft wins a tie
	if legacy.Max == Unbounded {
		legacy = p.countLegacy(true)
		enough = legacy.Min
	}
	enough = max(enough, 1)
	nft := exactly(0)
	for i := range families {
		if nft.Min < enough {
			p.countNFT(i, enough-nft.Min)
		}
		nft = nft.plus(p.evidence[i].Rules)
	}
	if certain := nft.Min >= legacy.Max || legacy.Min > nft.Max; !certain && legacy.Max != Unbounded {
		p.countLegacy(true)
	}
}

// countNFT counts nft rules until there are enough. Those in a table with foreign chains, or with a rule that iptables-nft
// cannot print, may be none of iptables'.
//
// While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table before its successor, and a dump
// that names a table ends after the first of that name: no rules, and no error (nf_tables_dump_rules). So only a dump that
// names none can show that a table has no rules.
func (p *prober) countNFT(i, enough int) {
	e, f := &p.evidence[i], families[i]
	tables, err := p.nft.tables(f, p.everything)
	if err != nil {
		e.fail(err)
		return
	}
	total, empty := 0, false
	var all counts
	for j, t := range tables {
		if t.exists && total < enough {
			named, err := p.nft.rules(f, tableNames[j], enough-total)
			e.fail(err)
			if all[j] = named[j]; len(t.foreign) == 0 && all[j].native == "" {
				total += all[j].Min
			}
			empty = empty || all[j].Count == exactly(0)
		} else if t.exists {
			all[j].Max = Unbounded
		}
	}
	if empty && total < enough {
		unnamed, err := p.nft.rules(f, "", enough)
		e.fail(err)
		for j, t := range tables {
			if t.exists && all[j].Count == exactly(0) {
				all[j] = unnamed[j]
			}
		}
	}
	e.Rules = exactly(0)
	for j, t := range tables {
		if native := all[j].native; native != "" && !slices.ContainsFunc(t.foreign, func(c Chain) bool { return c.Name == native }) {
			t.foreign = append(t.foreign, Chain{tableNames[j], native})
		}
		if len(t.foreign) > 0 {
			all[j].Min = 0
			e.Foreign = append(e.Foreign, t.foreign...)
		}
		e.Rules = e.Rules.plus(all[j].Count)
		if p.everything && t.exists {
			e.Tables = append(e.Tables, Table{tableNames[j], all[j].Count, t.users})
		}
	}
}

// countLegacy counts the rules in the tables of both families, exactly or by bounds.
func (p *prober) countLegacy(exact bool) Count {
	for i := range families {
		e, probe := &p.evidence[2+i], &p.legacy[i]
		if probe.err != nil {
			continue
		}
		e.Rules = exactly(0)
		for _, name := range tableNames {
			if !slices.Contains(probe.tables, name) {
				continue
			}
			t, err := probe.count(name, exact)
			if err != nil {
				e.fail(err)
				t = Table{Name: name, Rules: Count{0, Unbounded}}
			}
			e.Rules = e.Rules.plus(t.Rules)
			if p.everything {
				e.Tables = append(e.Tables, t)
			}
		}
	}
	return p.evidence[2].Rules.plus(p.evidence[3].Rules)
}
