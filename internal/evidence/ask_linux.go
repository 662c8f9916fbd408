// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"math"
	"slices"
)

// Ask asks the kernel about the network namespace of the calling thread. It never fails: what cannot be asked is
// unknown.
func (q Query) Ask() Result {
	if q.Override.Valid() && !q.Everything {
		return Result{Decision: q.Decide(Backend{}, Backend{})}
	}
	p := newProber(q)
	defer p.close()
	return p.ask()
}

// prober asks the kernel, and collects its answers.
type prober struct {
	query     Query
	nft       nftProbe
	legacy    [2]legacyProbe
	nftHas    Backend
	legacyHas Backend
	between   func() // for tests, which change the host between the questions
}

func newProber(q Query) *prober {
	return &prober{
		query:   q,
		nft:     nftProbe{most: mostObjects},
		legacy:  [2]legacyProbe{newLegacyProbe(IPv4), newLegacyProbe(IPv6)},
		between: func() {},
	}
}

func (p *prober) close() {
	p.nft.conn.Close()
	p.legacy[IPv4].close()
	p.legacy[IPv6].close()
}

// row returns the row of the table that applies by what is known so far.
func (p *prober) row() Decision { return p.query.row(p.nftHas, p.legacyHas) }

// ask puts the questions in this order, and stops when no further answer can change the decision.
func (p *prober) ask() Result {
	q := p.query
	p.askHints()
	if q.Everything || p.row().Reason != KubeletHint {
		p.askCanaries()
	}
	p.between()
	reason := p.row().Reason
	if q.Everything || !reason.Kubelet() && reason != Remembered {
		p.askBelowKubelet()
	}
	p.between()

	// The questions were not asked at one instant, and kubelet may be starting. So what outranks an answer is asked
	// once more before the answer is certain.
	d := p.row()
	if d.Conclusive && d.Reason != KubeletHint && d.Reason != Remembered {
		p.askHints()
		p.askCanaries()
		d = p.row()
	}
	couldChange := d.Reason == Default || d.Reason == OnlySupported && d.Mode == NFT
	if q.DryRun && (q.Everything || couldChange) {
		p.dryRun()
	}
	return Result{Decision: q.Decide(p.nftHas, p.legacyHas), NFT: p.nftHas, Legacy: p.legacyHas}
}

// askBelowKubelet asks for programs of the host, and then for rules.
func (p *prober) askBelowKubelet() {
	p.askNFTPrograms()
	p.askLegacyTables()
	if p.query.Everything || p.row().Reason != HostProgram {
		p.askNFTRules()
	}
}

// askHints asks nft for kubelet's hint. That wins, so legacy is asked only for a family in which nft has none.
func (p *prober) askHints() {
	for _, f := range families {
		a := &p.nftHas[f]
		var err error
		a.Hint, err = p.nft.chain(f, mangle, HintChain)
		a.Works = p.nft.works
		a.fail(about(NFT, f, err))
	}
	p.askLegacyKubelet()
}

// askLegacyKubelet asks legacy for both of kubelet's chains, because they are in one table, which is read whole.
func (p *prober) askLegacyKubelet() {
	for _, f := range families {
		if p.nftHas[f].Hint == Yes && !p.query.Everything {
			continue
		}
		if p.legacyHas[IPv4].Hint == Yes && f == IPv6 && !p.query.Everything {
			return // IPv4 decides, and whether nft differs for IPv6 is known
		}
		a := &p.legacyHas[f]
		a.Works = p.legacy[f].list()
		hint, canary, err := p.legacy[f].kubelet()
		a.Hint = hint
		if a.Canary != Yes { // one that was seen counts, even if kubelet is renewing it by now
			a.Canary = canary
		}
		a.fail(about(Legacy, f, err))
	}
}

// askCanaries asks nft for kubelet's canary. Legacy's is known with its hint.
func (p *prober) askCanaries() {
	for _, f := range families {
		a := &p.nftHas[f]
		if a.Canary == Yes {
			continue
		}
		var err error
		a.Canary, err = p.nft.chain(f, mangle, CanaryChain)
		a.fail(about(NFT, f, err))
	}
}

// about adds to an error which backend and family was asked.
func about(m Mode, f Family, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s (%s): %w", m, f, err)
}

// askNFTPrograms lists the tables once, and asks for each chain by its name where its table exists. The first chain is
// enough.
func (p *prober) askNFTPrograms() {
	tables, err := p.nft.tables()
	for _, f := range families {
		a := &p.nftHas[f]
		a.fail(about(NFT, f, err))
		for _, table := range tableNames {
			if slices.Contains(tables, f.qualified(table)) {
				a.Tables = append(a.Tables, table)
			}
		}
		a.Native = nativeTables(f, tables)
		a.Programs = hostTablesAmong(a.Native)
		a.HostTable = answer(len(a.Programs) > 0)
		if err != nil && a.HostTable == No {
			a.HostTable = Unknown
		}
	}
	for _, f := range families {
		a := &p.nftHas[f]
		a.HostChain = No
		for _, c := range hostChains {
			if err == nil && !slices.Contains(a.Tables, c.table) {
				continue
			}
			has, err := p.nft.chain(f, c.table, c.name(f))
			a.fail(about(NFT, f, err))
			a.HostChain = either(a.HostChain, has)
			if has != Yes {
				continue
			}
			a.Programs = append(a.Programs, Program{Name: c.program, Table: c.table, Chain: c.name(f)})
			if !p.query.Everything {
				return
			}
		}
	}
}

// askLegacyTables reads each listed table once, for programs of the host and for rules.
func (p *prober) askLegacyTables() {
	for _, f := range families {
		probe := &p.legacy[f]
		a := &p.legacyHas[f]
		a.HostTable = No // legacy has none of nftables' tables
		if probe.err != nil {
			continue
		}
		a.HostChain, a.Rules = No, No
		a.Tables = probe.tables
		for _, name := range probe.tables {
			t, err := probe.readOnce(name)
			a.fail(about(Legacy, f, err))
			programs := t.programsIn(f, name)
			a.Programs = append(a.Programs, programs...)
			switch {
			case len(programs) > 0:
				a.HostChain = Yes
			case !t.known && hasHostChains(name):
				a.HostChain = either(a.HostChain, Unknown)
			}
			a.Rules = either(a.Rules, t.any)
			a.Count += t.rules
		}
	}
}

// readOnce returns mangle as it was read for kubelet's chains.
func (p *legacyProbe) readOnce(table string) (legacyTable, error) {
	if table == mangle && p.mangle != nil {
		return *p.mangle, nil
	}
	return p.read(table)
}

func hasHostChains(table string) bool {
	return slices.ContainsFunc(hostChains[:], func(c hostChain) bool { return c.table == table })
}

// askNFTRules reads rules until nft is known to have as many as legacy, and at least one: that is enough, because nft
// wins a tie.
func (p *prober) askNFTRules() {
	enough := max(1, p.legacyHas[IPv4].Count+p.legacyHas[IPv6].Count)
	if p.query.Everything {
		enough = math.MaxInt
	}
	for _, f := range families {
		a := &p.nftHas[f]
		d, err := p.nft.rules(f, enough)
		a.fail(about(NFT, f, err))
		var foreign []Chain
		chainsKnown := false
		if p.query.Everything || d.read > 0 && d.mayBeForeign(enough) {
			foreign, err = p.nft.foreignChains(f)
			a.fail(about(NFT, f, err))
			chainsKnown = err == nil
		}
		a.Rules, a.Count, a.Foreign = d.judge(foreign, chainsKnown)
		enough -= a.Count
		if enough <= 0 {
			return
		}
	}
}
