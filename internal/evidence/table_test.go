// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import "testing"

// A host is described by one answer for each of these questions.
type fact int

const (
	nftHint4 fact = iota
	nftHint6
	nftCanary4
	nftCanary6
	nftHostChain
	nftHostTable
	nftRules
	legacyHint4
	legacyHint6
	legacyCanary4
	legacyCanary6
	legacyHostChain
	legacyRules
	facts
)

type hostFacts [facts]Answer

// backends puts what both families share into IPv4.
func (h hostFacts) backends() (nft, legacy Backend) {
	nft[IPv4] = About{
		Hint: h[nftHint4], Canary: h[nftCanary4], HostChain: h[nftHostChain], HostTable: h[nftHostTable],
		Rules: h[nftRules],
	}
	nft[IPv6] = About{Hint: h[nftHint6], Canary: h[nftCanary6], HostChain: No, HostTable: No, Rules: No}
	legacy[IPv4] = About{
		Hint: h[legacyHint4], Canary: h[legacyCanary4], HostChain: h[legacyHostChain], HostTable: No,
		Rules: h[legacyRules],
	}
	legacy[IPv6] = About{Hint: h[legacyHint6], Canary: h[legacyCanary6], HostChain: No, HostTable: No, Rules: No}
	return nft, legacy
}

// each calls f with every host that differs from h in what the facts are, each with every one of the answers.
func (h hostFacts) each(which []fact, answers []Answer, f func(hostFacts)) {
	if len(which) == 0 {
		f(h)
		return
	}
	for _, a := range answers {
		h[which[0]] = a
		h.each(which[1:], answers, f)
	}
}

func (h hostFacts) unknown() (all []fact) {
	for i, a := range h {
		if a == Unknown {
			all = append(all, fact(i))
		}
	}
	return all
}

// minimal takes unknown for none.
func (h hostFacts) minimal() hostFacts {
	for _, i := range h.unknown() {
		h[i] = No
	}
	return h
}

// kubeletUses is the backend that kubelet's chains show on a host of which everything is known: in each family nft if
// it has the chain, otherwise legacy if it has.
func (h hostFacts) kubeletUses() (Mode, Reason, bool) {
	uses := func(nft, legacy fact) Mode {
		switch {
		case h[nft] == Yes:
			return NFT
		case h[legacy] == Yes:
			return Legacy
		}
		return ""
	}
	for _, kind := range []struct {
		reason Reason
		v4, v6 Mode
	}{
		{KubeletHint, uses(nftHint4, legacyHint4), uses(nftHint6, legacyHint6)},
		{KubeletCanary, uses(nftCanary4, legacyCanary4), uses(nftCanary6, legacyCanary6)},
	} {
		if kind.v4 != "" {
			return kind.v4, kind.reason, kind.v6 != "" && kind.v6 != kind.v4
		}
		if kind.v6 != "" {
			return kind.v6, kind.reason, false
		}
	}
	return "", "", false
}

// provenBelow is what programs and rules prove on a host of which everything is known, "" for nothing.
func (h hostFacts) provenBelow() Mode {
	nftHost := h[nftHostChain] == Yes || h[nftHostTable] == Yes
	switch {
	case nftHost && h[legacyHostChain] == Yes:
		return ""
	case h[nftHostChain] == Yes:
		return NFT
	case h[legacyHostChain] == Yes:
		return Legacy
	case h[nftRules] == Yes && h[legacyRules] == Yes:
		return ""
	case h[legacyRules] == Yes:
		if nftHost {
			return ""
		}
		return Legacy
	case h[nftRules] == Yes || nftHost:
		return NFT
	}
	return ""
}

// want is the definition: an answer is certain if every host that the known facts describe has it.
func (h hostFacts) want(remembered Decision) Decision {
	least := h.minimal()
	mode, reason, _ := least.kubeletUses()
	if mode != "" {
		same, alwaysDiffers := true, true
		h.each(h.unknown(), []Answer{No, Yes}, func(full hostFacts) {
			m, r, differs := full.kubeletUses()
			same = same && m == mode
			alwaysDiffers = alwaysDiffers && (differs || r != reason)
		})
		certain := same && !alwaysDiffers
		if certain && reason == KubeletCanary {
			_, _, certain = h.canariesAgree()
		}
		if certain || !remembered.Mode.Valid() {
			return Decision{Mode: mode, Reason: reason, Conclusive: certain}
		}
	}
	prove := func(full hostFacts) Mode {
		m, _, differs := full.kubeletUses()
		switch {
		case differs:
			return ""
		case m != "":
			return m
		case remembered.Mode.Valid() && (!remembered.Conclusive || remembered.Reason == Selected):
			return ""
		case remembered.Mode.Valid():
			return remembered.Mode
		}
		return full.provenBelow()
	}
	d := Decision{Mode: NFT, Reason: Default}
	nftHost := least[nftHostChain] == Yes || least[nftHostTable] == Yes
	switch {
	case remembered.Mode.Valid():
		d = Decision{Mode: remembered.Mode, Reason: Remembered}
	case nftHost && least[legacyHostChain] != Yes:
		d = Decision{Mode: NFT, Reason: HostProgram}
	case !nftHost && least[legacyHostChain] == Yes:
		d = Decision{Mode: Legacy, Reason: HostProgram}
	case least[nftRules] == Yes:
		d = Decision{Mode: NFT, Reason: RuleCount}
	case least[legacyRules] == Yes:
		d = Decision{Mode: Legacy, Reason: RuleCount}
	}
	d.Conclusive = true
	h.each(h.unknown(), []Answer{No, Yes}, func(full hostFacts) {
		d.Conclusive = d.Conclusive && prove(full) == d.Mode
	})
	return d
}

// canariesAgree reports that no host that the known canaries describe has to have them in different backends.
func (h hostFacts) canariesAgree() (Mode, Reason, bool) {
	for i := range h {
		if f := fact(i); f == nftHint4 || f == nftHint6 || f == legacyHint4 || f == legacyHint6 {
			h[i] = No
		}
	}
	agree := false
	var mode Mode
	h.each(h.unknown(), []Answer{No, Yes}, func(full hostFacts) {
		m, _, differs := full.kubeletUses()
		mode = m
		agree = agree || !differs
	})
	return mode, KubeletCanary, agree
}

// The table is what the definition says, for everything that can be known of a host.
func TestDecideIsTheDefinition(t *testing.T) {
	all := []Answer{Unknown, No, Yes}
	var nothing hostFacts
	for i := range nothing {
		nothing[i] = No
	}
	chainsOfKubelet := []fact{
		nftHint4, nftHint6, nftCanary4, nftCanary6, legacyHint4, legacyHint6, legacyCanary4, legacyCanary6,
	}
	kinds := []fact{
		nftHint4, nftCanary4, nftHostChain, nftHostTable, nftRules, legacyHint4, legacyCanary4, legacyHostChain,
		legacyRules,
	}
	remembered := []Decision{{}}
	for _, m := range Modes() {
		remembered = append(remembered, Decision{Mode: m}, Decision{Mode: m, Conclusive: true},
			Decision{Mode: m, Conclusive: true, Reason: Selected})
	}
	seen := map[Decision]int{}
	for _, which := range [][]fact{chainsOfKubelet, kinds} {
		for _, r := range remembered {
			q := Query{Remembered: r}
			nothing.each(which, all, func(h hostFacts) {
				got, want := q.row(h.backends()), h.want(r)
				seen[got]++
				if got != want {
					t.Fatalf("%v, %#v: got %#v, want %#v", h, r, got, want)
				}
			})
		}
	}
	for _, reason := range []Reason{KubeletHint, KubeletCanary, Remembered, HostProgram, RuleCount} {
		for _, m := range Modes() {
			for _, certain := range []bool{false, true} {
				if seen[Decision{Mode: m, Reason: reason, Conclusive: certain}] == 0 {
					t.Errorf("no case: %s, %s, certain %v", m, reason, certain)
				}
			}
		}
	}
}
