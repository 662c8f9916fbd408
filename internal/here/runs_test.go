// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// What the command runs, by where it leads, and what decides.
func TestRuns(t *testing.T) {
	const other = "/opt/bin/iptables"
	wrapped := layout.Status{ResolvesTo: "w", Wrapper: true}
	byCount := detect.Result{Mode: detect.NFT, Reason: detect.RuleCount}
	remembered := detect.Result{Mode: detect.Legacy, Reason: detect.Remembered}
	for _, test := range []struct {
		doc      string
		command  layout.Status
		override detect.Mode
		asked    detect.Result
		want     Here
	}{
		{"nothing there", layout.Status{Error: "gone"}, detect.NFT, remembered, Here{How: Missing, Error: "gone"}},
		{
			"the switch has moved", layout.Status{ResolvesTo: nftProgram, Mode: detect.NFT, Switched: true},
			detect.Legacy, remembered,
			Here{Backend: detect.NFT, Program: nftProgram, How: Switch},
		},
		{
			"not through the switch", layout.Status{ResolvesTo: nftProgram, Mode: detect.NFT}, detect.Legacy,
			remembered,
			Here{Backend: detect.NFT, Program: nftProgram, How: NotWrapped},
		},
		{"something else", layout.Status{ResolvesTo: other}, "", byCount, Here{Program: other, How: NotWrapped}},
		{
			"something else, by the switch", layout.Status{ResolvesTo: other, Switched: true}, "", byCount,
			Here{Program: other, How: NotWrapped},
		},
		{"the variable", wrapped, detect.Legacy, byCount, Here{Backend: detect.Legacy, Program: "w", How: Variable}},
		{
			"the variable and the memory", wrapped, detect.NFT, remembered,
			Here{Backend: detect.NFT, Program: "w", How: Variable},
		},
		{"the memory", wrapped, "", remembered, Here{Backend: detect.Legacy, Program: "w", How: Remembered}},
		{"a count", wrapped, "", byCount, Here{Backend: detect.NFT, Program: "w", How: EachCall}},
	} {
		got := runs(test.command, test.override, test.asked)
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.doc, got, test.want)
		}
	}
}

func TestString(t *testing.T) {
	for want, h := range map[string]Here{
		"missing":                           {How: Missing, Program: "p"},
		"nft (p)":                           {Backend: detect.NFT, Program: "p", How: Switch},
		"unknown (p)":                       {Program: "p", How: NotWrapped},
		"nft (p, remembered)":               {Backend: detect.NFT, Program: "p", How: Remembered},
		"nft (p, by IPTABLES_WRAPPER_MODE)": {Backend: detect.NFT, Program: "p", How: Variable},
		"nft (no such program, detected at each call)": {Backend: detect.NFT, How: EachCall},
	} {
		if got := h.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Only the wrapper looks for a program.
func TestDecides(t *testing.T) {
	for how, want := range map[string]bool{
		Switch: false, NotWrapped: false, Missing: false,
		Remembered: true, Variable: true, EachCall: true,
	} {
		if got := (Here{How: how}).decides(); got != want {
			t.Errorf("%s: got %v", how, got)
		}
	}
}
