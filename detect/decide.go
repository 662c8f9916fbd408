// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Decide returns the first row of its table that applies. held is the backend that the caller already uses, "" if none.
// If the row is not certain, held is the answer.
//
// A question that could not be answered is treated as "not found" when the row is chosen, and makes the answer a guess.
// Decide does no I/O.
func Decide(e Evidence, held Backend) Result {
	hint := e.find(hints)
	canary := e.find(canaries)
	program := e.find(programs)
	hasRules := e.NFT.Rules > 0 || e.Legacy.Rules > 0
	more := NFT
	if e.Legacy.Rules > e.NFT.Rules {
		more = Legacy
	}
	table := [...]struct {
		reason  Reason
		backend Backend
		applies bool
		certain bool
	}{
		{reason: KubeletHint, backend: hint, applies: hint.Valid(), certain: e.certain(hint, hints)},
		{reason: KubeletCanary, backend: canary, applies: canary.Valid(), certain: e.certain(canary, canaries)},
		{reason: HostProgram, backend: program, applies: program.Valid(), certain: e.certain(program, programs)},
		{reason: OnlySupported, backend: Legacy, applies: e.NFT.Kernel == No},
		{reason: OnlySupported, backend: Legacy, applies: e.TakesRules == No && e.legacyCanRun()},
		{reason: RuleCount, backend: more, applies: hasRules},
		{reason: Default, backend: NFT, applies: true},
	}
	r := Result{Evidence: e}
	for _, row := range table {
		if row.applies {
			r.Backend, r.Reason, r.Certain = row.backend, row.reason, row.certain
			break
		}
	}
	if held.Valid() && !r.Certain {
		r.Backend, r.Reason = held, Held
	}
	return r
}

// answers returns the answers to the questions for a kind of name, by Family.
func (f *Findings) answers(k kind) *[2]Answer {
	return [...]*[2]Answer{hints: &f.Hint, canaries: &f.Canary, programs: &f.Program}[k]
}

// find returns the backend that has a name of a kind, "" if neither is known to have one. The IPv4 name decides. The
// IPv6 name counts only if neither backend has one for IPv4. If both backends have one, it is nft: the name in legacy
// may be left from before the host changed its backend.
func (e Evidence) find(k kind) Backend {
	for _, f := range families {
		for _, b := range Backends() {
			found := e.Of(b)
			if found.answers(k)[f] == Yes {
				return b
			}
		}
	}
	return ""
}

// certain reports whether b's other backend is known to have no name of the weakest kind or of a stronger one, in
// either family.
func (e Evidence) certain(b Backend, weakest kind) bool {
	other := e.Of(b.Other())
	for k := hints; k <= weakest; k++ {
		if *other.answers(k) != [2]Answer{No, No} {
			return false
		}
	}
	return true
}

// legacyCanRun reports whether x_tables is loaded, or iptables-legacy can load it.
func (e Evidence) legacyCanRun() bool { return e.Legacy.Kernel == Yes || e.Loadable == Yes }
