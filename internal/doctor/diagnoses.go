// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// The codes. They are stable, and each is the heading of a paragraph in docs/troubleshooting.md.
const (
	notPermitted = "not-permitted"
	kernel       = "kernel"
	noProgram    = "no-program"
	wrongBackend = "wrong-backend"
	bothBackends = "both-backends"
	nftTable     = "nft-table"
	oldIptables  = "old-iptables"
	lock         = "lock"
	notWrapped   = "not-wrapped"
	uncertain    = "uncertain"
)

// A diagnosis is one observation, and what can be done about it.
type diagnosis struct {
	code     string
	severity string
	needs    bool                  // the wanted backend's answers: it is silent where these cannot be had
	see      func(*state) string   // what was seen, in one or two sentences; "" if it was not
	look     func(*state) []string // commands that show it. Each ends, and has no name that others in the network chose
	do       func(*state) string   // one or two sentences
}

// diagnoses are all, in the order in which an operator should look at them: what keeps iptables from running at all
// comes first. Of each code, the first row that is seen counts, and of each command, the first finding.
var diagnoses = []diagnosis{
	{code: notPermitted, severity: problem, see: printed(notPermitted), look: again(notPermitted), do: permit},
	{code: notPermitted, severity: problem, see: refused, look: show(rights), do: permit},
	{code: notPermitted, severity: problem, see: notCapable, look: show(rights), do: permit},

	ofCall(kernel, problem, kernel, modules),
	{code: kernel, severity: problem, needs: true, see: notLoaded, look: show(evidence, release), do: advise(modprobe)},
	{code: kernel, severity: problem, needs: true, see: noRules, look: show(evidence, release), do: advise(modules)},

	{code: noProgram, severity: problem, see: cannotRun, look: showWay(fails), do: repair},
	{code: noProgram, severity: problem, needs: true, see: hangs, look: showProgram, do: advise(hanging)},
	ofCall(noProgram, problem, noProgram, library),
	ofCall(noProgram, problem, unexplained, unknown),

	{code: wrongBackend, severity: problem, see: runsOther, look: showWay(differs), do: follow},

	{code: bothBackends, severity: problem, see: otherHas(acts), look: showOther, do: advise(agree)},
	{code: bothBackends, severity: warning, see: otherHas(hasRules), look: showOther, do: advise(agree)},

	ofCall(nftTable, problem, nftTable, ownTable),
	{code: nftTable, severity: problem, needs: true, see: unusable, look: showNFT, do: advise(ownTable)},
	{code: nftTable, severity: warning, needs: true, see: madeWithNFT, look: showNFT, do: advise(ownTable)},
	ofCall(nftTable, warning, nftChains, ownTable),

	{code: oldIptables, severity: warning, see: isOld, look: show("iptables --version"), do: advise(newer)},

	{code: lock, severity: problem, needs: true, see: cannotLock, look: showLock, do: giveLock},

	{code: notWrapped, severity: warning, see: bypassed, look: showWay(bypasses), do: wrap},

	{code: uncertain, severity: warning, see: notStarted, look: showExposed, do: advise(remedyFor(file.ErrExposed))},
	{code: uncertain, severity: warning, needs: true, see: guessed, look: show(evidence), do: choose},
}

// ofCall is a row about a call that failed with a code, or printed a line of it.
func ofCall(code, severity, of, do string) diagnosis {
	return diagnosis{code: code, severity: severity, needs: true, see: printed(of), look: again(of), do: mend(of, do)}
}

// diagnose makes the findings, problems first. reference is the tag or the commit of the page that explains them.
func (s *state) diagnose(reference string) []Finding {
	all := []Finding{}
	isMute := s.scarce != nil || fails(s, s.commands[0])
	for _, d := range diagnoses {
		if len(all) > 0 && all[len(all)-1].Code == d.code || d.needs && isMute {
			continue
		}
		text := d.see(s)
		if text == "" {
			continue
		}
		isMute = isMute || d.code == notPermitted && !s.shown()
		f := Finding{
			Code: d.code, Severity: d.severity, Text: text, Look: d.look(s), Do: d.do(s),
			More: "https://github.com/iptables-wrappers/iptables-wrappers/blob/" + reference +
				"/docs/troubleshooting.md#" + d.code,
		}
		for _, before := range all {
			if before.Do == f.Do {
				f.Do = "Do what " + before.Code + " says first."
			}
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) }) // "problem" first
	return all
}
