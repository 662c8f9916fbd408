// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/oracle"
)

var (
	answers = []oracle.Answer{oracle.No, oracle.Yes, oracle.Unknown}
	held    = []string{"", oracle.NFT, oracle.Legacy}
)

// Every combination of markers, in both backends and families, gives what the oracle says.
func TestMarkersLikeOracle(t *testing.T) {
	// A rule in legacy, so that a mistaken row is another backend.
	h := oracle.Host{
		NFT:        oracle.Backend{InKernel: oracle.Yes},
		Legacy:     oracle.Backend{InKernel: oracle.Yes, Rules: 1},
		TakesRules: oracle.Yes,
	}
	var markers []*oracle.Answer
	for _, b := range []*oracle.Backend{&h.NFT, &h.Legacy} {
		for kind := range b.Markers {
			for family := range b.Markers[kind] {
				markers = append(markers, &b.Markers[kind][family])
			}
		}
	}
	combinations := 0
	each(markers, func() {
		combinations++
		for _, backend := range held {
			compare(t, &h, backend)
		}
	})
	if combinations != 531441 {
		t.Errorf("%d combinations, not 3 to the power of 12", combinations)
	}
}

// Where no marker decides, every combination of numbers, of what the kernel has and of what is held gives what the
// oracle says. Where one decides, none of these matters but what is held.
func TestNumbersLikeOracle(t *testing.T) {
	without := [len(oracle.Backend{}.Markers)][2]oracle.Answer{}
	unknown := without
	unknown[oracle.Canary][oracle.IPv6] = oracle.Unknown
	program := without
	program[oracle.Program][oracle.IPv4] = oracle.Yes
	for _, nft := range []oracle.Backend{{Markers: without}, {Markers: unknown}, {Markers: program}} {
		for _, legacy := range []oracle.Backend{{Markers: without}, {Markers: unknown}, {Markers: program}} {
			h := oracle.Host{NFT: nft, Legacy: legacy}
			kernel := []*oracle.Answer{&h.NFT.InKernel, &h.Legacy.InKernel, &h.TakesRules, &h.Loadable}
			each(kernel, func() {
				for rules := range 32 {
					h.NFT.Rules, h.Legacy.Rules, h.NFT.TooMany = rules/4%4, rules%4, rules >= 16
					for _, backend := range held {
						compare(t, &h, backend)
					}
				}
			})
		}
	}
}

// each calls a function for every combination of answers.
func each(questions []*oracle.Answer, do func()) {
	if len(questions) == 0 {
		do()
		return
	}
	for _, *questions[0] = range answers {
		each(questions[1:], do)
	}
}

// compare decides about a host in both ways.
func compare(t *testing.T, h *oracle.Host, held string) {
	want := oracle.Decide(h, held)
	r := detect.Decide(evidence(h), detect.Backend(held))
	got := oracle.Decision{Backend: string(r.Backend), Reason: string(r.Reason), Certain: r.Certain}
	if got != want {
		t.Fatalf("%+v with %q held:\ndetect/decide.go says %+v,\ntest/oracle/decision.go %+v.\nIf the decision is to change, "+
			"change both, the table in docs/how-it-works.md, and its rows in test/script/decision.txtar.", *h, held, got, want)
	}
}

// evidence is a host as detect finds it.
func evidence(h *oracle.Host) detect.Evidence {
	return detect.Evidence{
		NFT:        findings(&h.NFT),
		Legacy:     findings(&h.Legacy),
		TakesRules: answerOf[h.TakesRules],
		Loadable:   answerOf[h.Loadable],
	}
}

func findings(b *oracle.Backend) detect.Findings {
	counted := detect.Yes
	if b.TooMany {
		counted = detect.No
	}
	return detect.Findings{
		Counted: counted,
		Kernel:  answerOf[b.InKernel],
		Hint:    byFamily(b.Markers[oracle.Hint]),
		Canary:  byFamily(b.Markers[oracle.Canary]),
		Program: byFamily(b.Markers[oracle.Program]),
		Rules:   b.Rules,
	}
}

var answerOf = [...]detect.Answer{oracle.No: detect.No, oracle.Yes: detect.Yes, oracle.Unknown: detect.Unknown}

func byFamily(known [2]oracle.Answer) [2]detect.Answer {
	return [...]detect.Answer{
		detect.IPv4: answerOf[known[oracle.IPv4]],
		detect.IPv6: answerOf[known[oracle.IPv6]],
	}
}
