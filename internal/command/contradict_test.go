// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// What is remembered is a guess where the host is known to use another backend.
func TestContradict(t *testing.T) {
	remembered := detect.Result{
		Mode: detect.NFT, Reason: detect.Remembered, Conclusive: true,
		Remembered: &detect.Memory{Mode: detect.NFT, Reason: detect.RuleCount, Conclusive: true},
	}
	guess := remembered
	guess.Conclusive = false
	count := remembered
	count.Reason = detect.RuleCount
	legacy := detect.Result{Mode: detect.Legacy, Reason: detect.OnlyInstalled, Conclusive: true}
	doubtful := legacy
	doubtful.Conclusive = false
	same := legacy
	same.Mode = detect.NFT
	for _, test := range []struct {
		doc          string
		result, host detect.Result
		contradicted bool
	}{
		{"certain", remembered, legacy, true},
		{"a guess", guess, legacy, true},
		{"the host is not certain", remembered, doubtful, false},
		{"the host has the same", remembered, same, false},
		{"nothing is remembered", count, legacy, false},
	} {
		a := answer{Result: test.result}
		a.contradict(test.host)
		const why = "this container remembers nft, but the host uses the other backend: only the legacy programs are " +
			"installed"
		contradicted := !a.Conclusive && a.Uncertainty() == why && a.now == "only the legacy programs are installed"
		unchanged := a.Conclusive == test.result.Conclusive && a.now == "" && a.Uncertainty() != why
		if contradicted != test.contradicted || unchanged == test.contradicted || a.Mode != detect.NFT {
			t.Errorf("%s: got %+v, %q", test.doc, a, a.Uncertainty())
		}
	}
}
