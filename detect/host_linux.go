// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"math"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// Host returns the backend that is used in the network namespace of the calling thread. held is a backend in which the
// caller has made rules, "" if none: Host returns the other one only if a name proves it. Host asks for one kind of
// name after the other, and stops at the kind that decides.
//
// The Result can always be used. The error describes the questions that failed; errors.Is finds the kernel's errno in
// it: unix.EPERM if CAP_NET_ADMIN is missing, unix.EMFILE if the process has no descriptor left. The Result can be
// certain all the same. Host reads neither what iptables-wrapper keeps in a container, nor the environment.
func Host(held Backend) (Result, error) {
	a := newAsker()
	defer a.nft.close()
	e := a.start()
	for k := hints; k <= programs; k++ {
		e = a.askNames(e, k)
		if e.find(k).Valid() {
			return finish(e, held)
		}
	}
	if held.Valid() {
		return finish(e, held)
	}
	e = a.count(e, false)
	e = a.dryRunIfNeeded(e)
	return finish(e, "")
}

// Survey is Host with nothing held and with every question asked, for people. It makes the dry run only if Host would,
// because a dry run may leave modules loaded.
func Survey() (Result, error) {
	a := newAsker()
	defer a.nft.close()
	e := a.start()
	for k := hints; k <= programs; k++ {
		e = a.askNames(e, k)
	}
	e = a.count(e, true)
	e = a.dryRunIfNeeded(e)
	return finish(e, "")
}

func finish(e Evidence, held Backend) (Result, error) {
	return Decide(e, held), errors.Join(e.NFT.Err, e.Legacy.Err)
}

// asker puts questions to both backends.
type asker struct {
	nft    *nftAsker
	legacy [2]*legacyAsker
}

func newAsker() asker {
	return asker{nft: newNFTAsker(), legacy: [2]*legacyAsker{newLegacyAsker(IPv4), newLegacyAsker(IPv6)}}
}

// start returns the evidence before the first name is asked for: which backends the kernel has.
func (a asker) start() (e Evidence) {
	e.NFT.Kernel, e.NFT.Err = a.nft.kernel, a.nft.err
	e.Legacy.Kernel, e.Legacy.Err = a.legacy[IPv4].kernel, join(a.legacy[IPv4].err, a.legacy[IPv6].err)
	return e
}

// askNames asks for all names of a kind.
func (a asker) askNames(e Evidence, k kind) Evidence {
	for _, f := range families {
		for _, n := range &knownNames {
			if !n.is(k, f) {
				continue
			}
			n.Family = f
			answer, err := a.nft.has(n)
			e.NFT = e.NFT.note(k, n, answer, err)
			answer, err = a.legacy[f].has(n)
			e.Legacy = e.Legacy.note(k, n, answer, err)
		}
	}
	return e
}

// note returns the findings with the answer to whether a name of a kind exists. A kind is Yes if one of its names is,
// otherwise Unknown if one is, otherwise No.
func (f Findings) note(k kind, n Name, answer Answer, err error) Findings {
	known := &f.answers(k)[n.Family]
	switch {
	case answer == Yes:
		*known = Yes
		f.Names = append(f.Names, n)
	case *known == NotAsked, *known == No:
		*known = answer
	}
	f.Err = join(f.Err, err)
	return f
}

// count counts the rules of legacy. It counts those of nft until they are more than legacy's, or all.
func (a asker) count(e Evidence, all bool) Evidence {
	e.Legacy.Counted = Yes
	for _, f := range families {
		n, counted, err := a.legacy[f].count()
		e.Legacy.Rules += n
		e.Legacy.Counted = min(e.Legacy.Counted, counted)
		e.Legacy.Err = join(e.Legacy.Err, err)
	}
	limit := e.Legacy.Rules
	if all {
		limit = math.MaxInt
	}
	rules, counted, err := a.nft.count(limit)
	e.NFT.Rules = rules.Number
	e.NFT.Counted = counted
	e.NFT.Err = join(e.NFT.Err, err)
	if rules.Iptables {
		e.TakesRules = Yes
	}
	return e
}

// dryRunIfNeeded makes the dry run if it can make legacy the answer: no name decides, nft would be the answer,
// nf_tables has no rule of iptables yet, and legacy can run.
func (a asker) dryRunIfNeeded(e Evidence) Evidence {
	r := Decide(e, "")
	if r.Backend != NFT || r.Reason != RuleCount && r.Reason != Default || e.TakesRules == Yes || e.NFT.Kernel != Yes {
		return e
	}
	if e.Legacy.Kernel == No {
		loadable, err := xtables.Loadable()
		e.Loadable = answerOf(loadable, err)
		e.Legacy.Err = join(e.Legacy.Err, err)
	}
	if !e.legacyCanRun() {
		return e
	}
	lacks, err := a.nft.conn.Lacks()
	e.TakesRules = answerOf(lacks == "", err)
	e.Lacks = lacks
	e.NFT.Err = join(e.NFT.Err, err)
	return e
}

// answerOf returns the Answer to a question that returned yes, or failed.
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

// persist repeats a question if its subject changed meanwhile. It asks three times at most, 10 ms apart.
func persist(ask func() error) error {
	for range 2 {
		err := ask()
		if !errors.Is(err, nft.ErrChanged) && !errors.Is(err, xtables.ErrChanged) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ask()
}

// join adds err to known, unless known has the same cause: a process that lacks a capability gets the same error from
// every question. What else failed, such as for want of descriptors, must not be hidden.
func join(known, err error) error {
	switch {
	case err == nil:
		return known
	case known == nil:
		return err
	case errors.Is(known, cause(err)):
		return known
	}
	return errors.Join(known, err)
}

// cause returns the innermost error that err wraps.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
