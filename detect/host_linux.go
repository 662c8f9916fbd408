// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"math"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// Host returns the backend that is used in the network namespace of the calling thread. held is a backend in which the
// caller has made rules, "" if none: Host returns the other one only if a marker proves it. Host asks for one kind of
// marker after the other, and stops at the kind that decides.
//
// The Result can always be used, and can be certain even with an error. The error joins Findings.Err of both backends:
// unix.EPERM if CAP_NET_ADMIN is missing, unix.EMFILE if the process has no descriptor left. Host reads neither what
// iptables-wrapper keeps in a container, nor the environment.
func Host(held Backend) (Result, error) {
	a, e := start()
	defer a.nft.Close()
	for _, reason := range byMarker {
		e = a.askMarkers(e, reason)
		if e.marked(reason).Valid() {
			return finish(e, held)
		}
	}
	if held.Valid() {
		return finish(e, held)
	}
	e = askLoadable(e)
	if Decide(e, "").Reason != OnlySupported { // otherwise, numbers do not matter
		e = a.count(e, false)
		e = a.dryRunIfNeeded(e)
	}
	return finish(e, "")
}

// Survey is Host with nothing held and with every question asked, for people. It makes the dry run only if Host would,
// because a dry run may leave modules loaded.
func Survey() (Result, error) {
	a, e := start()
	defer a.nft.Close()
	for _, reason := range byMarker {
		e = a.askMarkers(e, reason)
	}
	e = askLoadable(e)
	e = a.count(e, true)
	e = a.dryRunIfNeeded(e)
	return finish(e, "")
}

func finish(e Evidence, held Backend) (Result, error) {
	return Decide(e, held), errors.Join(e.NFT.Err, e.Legacy.Err)
}

type asker struct {
	nft    nft.Conn
	tables []nftTable      // as far as they were asked for
	legacy [2]legacyTables // by Family
}

// start asks which backends the kernel has.
func start() (a *asker, e Evidence) {
	a = &asker{}
	present, err := a.nft.Present()
	e.NFT.Kernel = answerOf(present, err)
	e.NFT.Err = err
	for _, f := range families {
		listed, loaded, err := xtables.Listed(f == IPv6)
		a.legacy[f] = legacyTables{family: f, loaded: answerOf(loaded, err), listed: listed}
		e.Legacy.Err = cmp.Or(e.Legacy.Err, err)
	}
	e.Legacy.Kernel = max(a.legacy[IPv4].loaded, a.legacy[IPv6].loaded)
	return a, e
}

// askLoadable asks whether x_tables could be loaded, if it is not.
func askLoadable(e Evidence) Evidence {
	if e.Legacy.Kernel != No {
		return e
	}
	loadable, err := xtables.Loadable()
	e.Loadable = answerOf(loadable, err)
	e.Legacy.Err = cmp.Or(e.Legacy.Err, err)
	return e
}

// askMarkers asks both backends for each marker of a reason.
func (a *asker) askMarkers(e Evidence, r Reason) Evidence {
	for m := range markersOf(r) {
		answer, err := e.NFT.Kernel, error(nil)
		if answer == Yes {
			answer, err = a.hasNFT(m)
		}
		e.NFT = e.NFT.add(m, answer, err)
		answer, err = a.legacy[m.Family].has(m)
		e.Legacy = e.Legacy.add(m, answer, err)
	}
	return e
}

// add adds the answer to whether a marker exists.
func (f Findings) add(m Marker, answer Answer, err error) Findings {
	known := &f.answers(m.reason())[m.Family]
	*known = max(*known, answer)
	if answer == Yes {
		f.Markers = append(f.Markers, m)
	}
	f.Err = cmp.Or(f.Err, err)
	return f
}

// count counts legacy's rules, then nft's: all, or only until nft has more.
func (a *asker) count(e Evidence, all bool) Evidence {
	e.Legacy.Counted = Yes
	for _, t := range a.legacy {
		e.Legacy = t.count(e.Legacy)
	}
	limit := e.Legacy.Rules
	if all {
		limit = math.MaxInt
	}
	return a.countNFT(e, limit)
}

// dryRunIfNeeded makes the dry run if it can change the answer from nft to legacy: see the package comment.
func (a *asker) dryRunIfNeeded(e Evidence) Evidence {
	r := Decide(e, "")
	isByNumber := r.Reason == RuleCount || r.Reason == Default
	if !isByNumber || r.Backend != NFT || e.TakesRules == Yes || e.NFT.Kernel != Yes || !e.legacyCanRun() {
		return e
	}
	lacks, err := a.nft.Lacks(false)
	e.TakesRules = answerOf(lacks == "", err)
	e.Lacks = lacks
	e.NFT.Err = cmp.Or(e.NFT.Err, err)
	return e
}

func answerOf(yes bool, err error) Answer {
	switch {
	case err != nil:
		return Unknown
	case yes:
		return Yes
	default:
		return No
	}
}
