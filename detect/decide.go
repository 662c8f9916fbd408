// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Decide returns the first row of its table that applies. held is the backend that the caller already uses, "" if none.
// If the row is not certain, held is the answer.
//
// A question that could not be answered is treated as "not found". If it concerns the other backend's markers of the
// same or a stronger kind, the answer is a guess. Decide does no I/O.
func Decide(e Evidence, held Backend) Result {
	hint := e.marked(KubeletHint)
	canary := e.marked(KubeletCanary)
	program := e.marked(HostProgram)
	more := NFT
	if e.Legacy.Rules > e.NFT.Rules && e.NFT.Counted != No {
		more = Legacy
	}
	table := [...]struct {
		reason  Reason
		backend Backend
		applies bool
	}{
		{reason: KubeletHint, backend: hint, applies: hint.Valid()},
		{reason: KubeletCanary, backend: canary, applies: canary.Valid()},
		{reason: HostProgram, backend: program, applies: program.Valid()},
		{reason: OnlySupported, backend: Legacy, applies: e.NFT.Kernel == No},
		{reason: OnlySupported, backend: Legacy, applies: e.TakesRules == No && e.legacyCanRun()},
		{reason: OnlySupported, backend: NFT, applies: e.Legacy.Kernel == No && e.Loadable == No},
		{reason: RuleCount, backend: more, applies: e.NFT.Rules > 0 || e.Legacy.Rules > 0},
		{reason: Default, backend: NFT, applies: true},
	}
	r := Result{Evidence: e}
	for _, row := range table {
		if row.applies {
			r.Backend, r.Reason = row.backend, row.reason
			break
		}
	}
	r.Certain = e.proves(r.Reason, r.Backend)
	if held.Valid() && !r.Certain {
		r.Backend, r.Reason = held, Held
	}
	return r
}

// byMarker are the reasons that are markers, the strongest first.
var byMarker = [...]Reason{KubeletHint, KubeletCanary, HostProgram}

func (f *Findings) answers(r Reason) *[2]Answer {
	switch r {
	case KubeletHint:
		return &f.Hint
	case KubeletCanary:
		return &f.Canary
	}
	return &f.Program
}

// marked returns the backend that has a marker, "" if neither is known to have one. The IPv4 marker decides. The IPv6
// marker counts only if neither backend has one for IPv4. If both backends have one, it is nft: the marker in legacy
// may be left from before the host changed its backend.
func (e Evidence) marked(r Reason) Backend {
	for _, f := range families {
		for _, b := range Backends() {
			found := e.Of(b)
			if found.answers(r)[f] == Yes {
				return b
			}
		}
	}
	return ""
}

// legacyCanRun reports whether x_tables is loaded, or iptables-legacy can load it.
func (e Evidence) legacyCanRun() bool { return e.Legacy.Kernel == Yes || e.Loadable == Yes }

// proves reports whether a reason makes a backend certain: see Result.Certain. The markers of both families count.
func (e Evidence) proves(r Reason, b Backend) bool {
	other := e.Of(b.Other())
	for _, stronger := range byMarker {
		if *other.answers(stronger) != [2]Answer{No, No} {
			return false
		}
		if stronger == r {
			return true
		}
	}
	return false
}
