// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Run answers the query. It never fails: what cannot be asked is Unknown in the evidence, with the error.
func (q Query) Run() Result {
	if q.Override.exists() && !q.Everything {
		return q.result(unasked())
	}
	p := newProber(q)
	defer p.close()
	return p.run()
}

// effort is how much is read, whatever somebody has put into the namespace. What is beyond it is unknown.
type effort struct {
	objects  int    // of nf_tables: so many rules and as many chains, in all dumps together
	tables   int    // of nf_tables
	table    uint32 // bytes of a table of x_tables
	programs uint32 // bytes of the tables of x_tables that are read for the names of chains before anything is counted
}

var (
	// forCall costs a wrapped call a tenth of a second at most. The objects are as many as a busy writer needs, who
	// makes a dump of 5,000 rules start again several times. The table has room for 20,000 rules, and leaves memory for
	// the rest where a container may have no more than 16 MiB. To look for programs costs at most 0.3 ms at first.
	forCall = effort{objects: 32 << 10, tables: 256, table: 4 << 20, programs: 64 << 10}

	// forPeople is for Query.Everything, which counts what a call need not know.
	forPeople = effort{objects: 1 << 20, tables: 32 << 10, table: 64 << 20, programs: 64 << 20}
)

// prober asks the running kernel, and collects what it says.
type prober struct {
	query    Query
	most     effort
	nft      nftSocket
	legacy   [2]legacyProbe
	evidence [4]Evidence   // as in Result: nft's two families, then legacy's
	tables   []listedTable // of nf_tables, once they were listed
	counted  [2]nftCount   // of nft's two families
	between  func()        // is called between the questions: tests change the host there
}

func newProber(q Query) *prober {
	most := forCall
	if q.Everything {
		most = forPeople
	}
	return &prober{
		query:    q,
		most:     most,
		nft:      newNFTSocket(most),
		legacy:   [2]legacyProbe{newLegacyProbe(IPv4, most), newLegacyProbe(IPv6, most)},
		evidence: unasked(),
		counted:  [2]nftCount{{rules: uncounted()}, {rules: uncounted()}},
		between:  func() {},
	}
}

func (p *prober) close() {
	p.nft.close()
	p.legacy[0].close()
	p.legacy[1].close()
}

// run asks what can still change the answer, or everything.
func (p *prober) run() Result {
	q := p.query
	p.askHints()
	if q.Everything || !p.found(hint) {
		p.askNFT(CanaryChain) // one in legacy is not the end of the questions, because one in nft outranks it
	}
	p.between()
	kubelet := p.found(hint) || p.found(canary)
	if q.Remembered.Mode == NFT && !q.Remembered.Conclusive && !kubelet {
		p.askExists()
	}
	if q.Everything {
		p.askPrograms()
		p.countNFT(Unbounded)
		p.lookForFaults()
		p.countLegacy(true)
	} else if !kubelet && !p.remembered() {
		p.askPrograms()
		p.compareUnlessDecided()
	}
	p.between()

	// The questions were not asked at one instant, and kubelet may be starting: what outranks a lower row is asked
	// once more before that counts.
	lower := p.found(canary) || p.found(hasHostProgram) || p.nftRules().Min+p.legacyRules().Min > 0
	if lower && !p.found(hint) {
		p.askHints()
		if !p.found(hint) && p.evidence[0].Canary != Yes && p.evidence[1].Canary != Yes {
			p.askNFT(CanaryChain)
		}
	}
	if q.DryRun && (q.Everything || p.row().reason == Default) {
		p.dryRun(q.NAT)
	}
	r := q.result(p.evidence)
	// Privileged questions were answered, each with EPERM.
	r.unprivileged = max(p.nft.permitted, p.legacy[0].permitted, p.legacy[1].permitted) == No
	return r
}

// remembered reports whether what the container remembers of this network namespace decides, so that the rules do not.
// What it remembers of another one ranks below them.
func (p *prober) remembered() bool {
	q := p.query
	q.Home = Memory{}
	return q.decide(q.backends(p.evidence)).reason == Remembered
}

// row is the one that applies, as far as is known by now.
func (p *prober) row() row { return p.query.decide(p.query.backends(p.evidence)) }

// found reports whether something is known to be in any backend and family.
func (p *prober) found(what func(Evidence) bool) bool {
	return slices.ContainsFunc(p.evidence[:], what)
}

// askHints asks nft first, because its hint decides whatever legacy says. Legacy reports both chains at once.
func (p *prober) askHints() {
	if p.askNFT(HintChain) {
		return
	}
	for i := range families {
		e := &p.evidence[2+i]
		e.Supported = p.legacy[i].list()
		hint, canary, err := p.legacy[i].kubelet()
		e.Hint = hint
		if p.legacy[i].err == nil {
			e.exists = answer(len(p.legacy[i].tables) > 0)
		}
		if e.Canary != Yes { // a canary that was seen counts, even if kubelet is renewing it by now
			e.Canary = canary
		}
		e.fail(err)
		if hint == Yes && !p.query.Everything {
			return
		}
	}
}

// askExists asks whether nft has one of the five tables, in either family. For legacy, askHints has found that out.
func (p *prober) askExists() {
	for i, f := range families {
		e := &p.evidence[i]
		for _, name := range tableNames {
			var err error
			_, e.exists, err = p.nft.object(f, name, "")
			e.fail(err)
			if e.exists != No {
				return
			}
		}
	}
}

// askNFT asks for one of kubelet's chains in one family after the other, and reports whether that was enough.
func (p *prober) askNFT(chain string) (enough bool) {
	for i, f := range families {
		_, has, err := p.nft.object(f, mangle, chain)
		e := &p.evidence[i]
		e.Supported = p.nft.supported
		e.fail(err)
		switch chain {
		case HintChain:
			e.Hint = has
		case CanaryChain:
			e.Canary = has
		}
		if has == Yes && !p.query.Everything {
			return true
		}
	}
	return false
}

// Wait answers the query every PollInterval until there is a conclusive answer of the kind that WaitFor names, or ctx
// is done, and returns the last answer. An Override ends it at once. A dry run is made only when ctx is done, for the
// guess.
//
// The error is nil if what was waited for has come, or with an Override. Otherwise it is that of ctx, or says that
// WaitFor is none of its values; then there is no wait. A caller whose thread has entered another namespace must be
// locked to it.
func (q Query) Wait(ctx context.Context) (Result, error) { return q.wait(ctx, Query.Run) }

func (q Query) wait(ctx context.Context, run func(Query) Result) (Result, error) {
	if q.Override.exists() {
		return run(q), nil
	}
	if !q.WaitFor.exists() {
		return run(q), fmt.Errorf("detect: wait for %q: there is no such evidence", q.WaitFor)
	}
	look := q
	look.DryRun = q.DryRun && q.Everything // Everything wants its result, too
	for {
		r := run(look)
		if q.WaitFor.EndedBy(r) {
			return r, nil
		}
		select {
		case <-time.After(PollInterval):
		case <-ctx.Done():
			if look.DryRun == q.DryRun {
				return r, ctx.Err()
			}
			look = q // A dry run makes no answer conclusive, so once, for the guess, is enough.
		}
	}
}
