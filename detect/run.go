//go:build linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Run answers the query. It never fails: what cannot be asked is Unknown in the evidence, with the error.
func (q Query) Run() Result {
	if q.Override != "" && !q.Everything {
		return q.result(unasked())
	}
	k := newKernel()
	defer k.close()

	k.askHints(q.Everything)
	if q.Everything || !k.found(hint) {
		k.askCanaries(q.Everything)
	}
	switch {
	case q.Everything:
		k.countTables()
	case !k.found(hint) && !k.found(canary) && q.Remembered == "":
		k.compareRules()
	}
	return q.result(k.evidence)
}

// kernel is the running kernel while it is being asked: one probe per backend and family, and what they said.
type kernel struct {
	nft      nftProbe
	legacy   [2]legacyProbe
	evidence [4]Evidence // as in Result
}

func newKernel() *kernel {
	k := &kernel{nft: newNFTProbe(), legacy: [2]legacyProbe{newLegacyProbe(IPv4), newLegacyProbe(IPv6)}}
	k.evidence = unasked()
	return k
}

func (k *kernel) close() {
	k.nft.close()
	k.legacy[0].close()
	k.legacy[1].close()
}

func (k *kernel) nftEvidence() []Evidence    { return k.evidence[:2] }
func (k *kernel) legacyEvidence() []Evidence { return k.evidence[2:] }

func hint(e *Evidence) *Answer   { return &e.Hint }
func canary(e *Evidence) *Answer { return &e.Canary }

// found says whether the chain is known to be in any backend and family.
func (k *kernel) found(chain func(*Evidence) *Answer) bool {
	for i := range k.evidence {
		if *chain(&k.evidence[i]) == Yes {
			return true
		}
	}
	return false
}

// askHints asks nft first: its hint decides whatever legacy says.
func (k *kernel) askHints(all bool) {
	if k.askNFT(HintChain, hint, all) && !all {
		return
	}
	for i := range k.legacyEvidence() {
		e := &k.legacyEvidence()[i]
		k.legacy[i].mangleChains(e)
		if e.Hint == Yes && !all {
			return
		}
	}
}

// askCanaries asks nft only: legacy told of both chains when it was asked for the hint. A canary there is not the end
// of the questions, because one in nft would outrank it.
func (k *kernel) askCanaries(all bool) { k.askNFT(CanaryChain, canary, all) }

// askNFT says whether the chain is in one family, and asks no further once it is.
func (k *kernel) askNFT(chain string, field func(*Evidence) *Answer, all bool) bool {
	found := false
	for i := range k.nftEvidence() {
		e := &k.nftEvidence()[i]
		k.nft.chain(e, chain, field)
		if found = found || *field(e) == Yes; found && !all {
			break
		}
	}
	return found
}

// compareRules counts until one backend is known to have more rules. Legacy is asked first, for the bounds that its
// table headers give at once; nft is streamed as far as needed; only if the bounds are too wide are legacy's entries
// read. Where a part of legacy cannot be read, nothing will be certain, and what can be read is counted for the guess.
func (k *kernel) compareRules() {
	legacy := k.eachLegacy((*legacyProbe).boundRules)
	enough := legacy.Max // equal is nft
	if legacy.Max == Unbounded {
		legacy = k.eachLegacy((*legacyProbe).countRules)
		enough = legacy.Min
	}
	nft := exactly(0)
	for i := range k.nftEvidence() {
		e := &k.nftEvidence()[i]
		k.nft.countRules(e, max(enough, 1)-nft.Min)
		nft = nft.plus(e.Rules)
	}
	if _, certain := compare(nft, legacy); !certain && legacy.Max != Unbounded {
		k.eachLegacy((*legacyProbe).countRules)
	}
}

// eachLegacy counts both families of legacy in the given way.
func (k *kernel) eachLegacy(count func(*legacyProbe, *Evidence)) Count {
	sum := exactly(0)
	for i := range k.legacyEvidence() {
		e := &k.legacyEvidence()[i]
		count(&k.legacy[i], e)
		sum = sum.plus(e.Rules)
	}
	return sum
}

func (k *kernel) countTables() {
	for i := range k.nftEvidence() {
		k.nft.countTables(&k.nftEvidence()[i])
	}
	for i := range k.legacyEvidence() {
		k.legacy[i].countTables(&k.legacyEvidence()[i])
	}
}

// compare returns the backend with more rules, nft if they have the same number, and whether that is certain.
func compare(nft, legacy Count) (more Mode, certain bool) {
	switch {
	case nft.Min > 0 && nft.Min >= legacy.Max:
		return NFT, true
	case legacy.Min > nft.Max:
		return Legacy, true
	case legacy.Min > nft.Min:
		return Legacy, false
	case nft.Min > 0:
		return NFT, false
	default:
		return "", nft.Max == 0 && legacy.Max == 0
	}
}

// blame keeps the first error, the one nearest to the cause.
func (e *Evidence) blame(err error) {
	e.fail(err, "inspect")
}
