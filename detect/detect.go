// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package detect decides which backend of iptables, nft or legacy, is in use in the network namespace of the calling
// thread.
//
// It asks the kernel and nothing else: nf_tables over netlink, x_tables over getsockopt. It starts no process, writes
// no rule, registers no table and loads no module of the legacy backend; the kernel may load nf_tables by itself when
// asked about it, and nft_compat where nothing else decides, as it does for iptables-nft.
//
// A question has three outcomes: yes, no, could not tell. Only yes and no decide, and an answer is conclusive only if
// nothing that could not be read could overturn it. A caller that remembers an answer should remember conclusive ones
// only.
//
// Before v1, names in this package may change, with a note in the commit; from v1 on, Go's rules of compatibility hold.
// The values of Mode, Reason and Answer are stable. What Evidence.Err wraps is not promised.
package detect

// Mode is a backend of iptables.
type Mode string

// The two backends.
const (
	NFT    Mode = "nft"
	Legacy Mode = "legacy"
)

// Family is the address family of a table.
type Family string

// The two families that iptables and ip6tables serve.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// The chains that kubelet makes in table mangle of the backend it uses: the hint once at its start, since Kubernetes
// 1.24, as a promise to others (KEP-3178); the canary since 1.17, made again every minute.
const (
	HintChain   = "KUBE-IPTABLES-HINT"
	CanaryChain = "KUBE-KUBELET-CANARY"
)

// mangle is where kubelet leaves its chains: it is the table that stays small.
const mangle = "mangle"

// tableNames are the tables whose rules count, the likeliest to have some first.
var tableNames = [...]string{"filter", "nat", mangle, "raw", "security"}

// Answer is what the kernel said to a question.
type Answer int8

// NotAsked and Unknown decide nothing.
const (
	NotAsked Answer = iota // it could not change the result
	Unknown                // could not tell: the question was not allowed, or went wrong
	No
	Yes
)

// String returns the words used in every output: "not asked", "could not tell", "no", "yes".
func (a Answer) String() string {
	switch a {
	case Yes:
		return "yes"
	case No:
		return "no"
	case Unknown:
		return "could not tell"
	default:
		return "not asked"
	}
}

// Unbounded is the Max of a Count that has no known end.
const Unbounded = int(^uint(0) >> 1)

// Count is a number of rules, known to be at least Min and at most Max. It is exact when they are equal.
type Count struct{ Min, Max int }

func (c Count) plus(d Count) Count {
	if c.Max == Unbounded || d.Max == Unbounded {
		return Count{c.Min + d.Min, Unbounded}
	}
	return Count{c.Min + d.Min, c.Max + d.Max}
}

func exactly(n int) Count { return Count{n, n} }

// Table is one of the tables raw, mangle, nat, filter and security that exists in the namespace.
type Table struct {
	Name   string
	Rules  Count
	Chains []string // the user-defined ones, as far as they could be read
}

// Evidence is what one backend says about one family.
type Evidence struct {
	Backend Mode
	Family  Family

	// Supported says whether the running kernel can serve this backend. For legacy, Unknown is also the answer
	// where x_tables is not in the kernel now but a module may bring it: finding out would load it.
	Supported Answer

	Hint   Answer // HintChain is in table mangle
	Canary Answer // CanaryChain is in table mangle

	// Rules counts what iptables-save would print as -A lines, in the five tables together.
	Rules Count

	// Tables is filled by Query.Everything only.
	Tables []Table

	// Err is the first thing that could not be asked, and why.
	Err error
}

// blame keeps the first error, the one nearest to the cause.
func (e *Evidence) blame(err error) {
	if e.Err == nil {
		e.Err = err
	}
}

// Result is the decision with all that led to it.
type Result struct {
	Mode       Mode
	Reason     Reason
	Conclusive bool       // nothing that was not read could overturn Mode
	Evidence   []Evidence // nft IPv4, nft IPv6, legacy IPv4, legacy IPv6
	Conflicts  []Conflict // as far as both sides were asked
}

// Query says what is known beforehand and how much to ask. The zero Query knows nothing and asks as little as decides.
type Query struct {
	// Override, if set, is the answer.
	Override Mode

	// Installed says whether the programs of a backend can be run here. It is called only when the kernel's
	// evidence decides nothing. Nil: nothing is known about programs.
	Installed func(Mode) bool

	// Everything asks also what cannot change the answer: chains and exact counts of every table in both
	// backends. It costs time in proportion to the number of rules.
	Everything bool
}

// Host returns the backend that the network namespace of the calling thread uses, asking as little as decides. It
// needs CAP_NET_ADMIN in that namespace to be conclusive; without it, Result.Evidence says what could not be told.
//
// A caller that entered the namespace with setns(2) must be locked to its thread (runtime.LockOSThread).
func Host() Result { return Query{}.Run() }

// Run answers the query. It never fails: what cannot be asked is Unknown in the evidence, with the error.
func (q Query) Run() Result {
	if q.Override != "" && !q.Everything {
		return Result{Mode: q.Override, Reason: Override}
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
	case !k.found(hint) && !k.found(canary):
		k.compareRules()
	}

	f := k.facts(q.Override)
	mode, reason, conclusive := decide(f)
	if reason == Default && q.Installed != nil {
		f.nft.installed, f.legacy.installed = answer(q.Installed(NFT)), answer(q.Installed(Legacy))
		mode, reason, conclusive = decide(f)
	}
	if reason == Default {
		f.nft.compat = k.compat()
		mode, reason, conclusive = decide(f)
	}
	return Result{mode, reason, conclusive, k.evidence[:], conflicts(f)}
}

func answer(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// kernel is the running kernel while it is being asked: one probe per backend and family, and what they said.
type kernel struct {
	nft      nftProbe
	legacy   [2]legacyProbe
	evidence [4]Evidence // as in Result
}

func newKernel() *kernel {
	k := &kernel{nft: newNFTProbe(), legacy: [2]legacyProbe{newLegacyProbe(IPv4), newLegacyProbe(IPv6)}}
	for i, backend := range []Mode{NFT, NFT, Legacy, Legacy} {
		k.evidence[i] = Evidence{Backend: backend, Family: IPv4, Rules: Count{0, Unbounded}}
		if i%2 == 1 {
			k.evidence[i].Family = IPv6
		}
	}
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

// facts brings the evidence of both families together.
func (k *kernel) facts(override Mode) facts {
	return facts{override: override, nft: together(k.nftEvidence()), legacy: together(k.legacyEvidence())}
}

func together(families []Evidence) side {
	v4, v6 := families[0], families[1]
	return side{
		supported: either(v4.Supported, v6.Supported),
		hint:      either(v4.Hint, v6.Hint),
		canary:    either(v4.Canary, v6.Canary),
		rules:     v4.Rules.plus(v6.Rules),
	}
}

// either is yes if one is yes and no if both are no.
func either(a, b Answer) Answer {
	switch {
	case a == Yes || b == Yes:
		return Yes
	case a == No && b == No:
		return No
	case a == Unknown || b == Unknown:
		return Unknown
	default:
		return NotAsked
	}
}
