// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

var (
	no = [2]detect.Answer{detect.No, detect.No}
	// proven has a marker in legacy, and nft is known to have none. guessed has only rules in legacy. In lacking, the
	// kernel has only legacy.
	proven = detect.Evidence{
		NFT:    detect.Findings{Kernel: detect.Yes, Hint: no, Canary: no, Program: no},
		Legacy: detect.Findings{Kernel: detect.Yes, Hint: [2]detect.Answer{detect.Yes, detect.No}},
	}
	guessed = detect.Evidence{
		NFT:    detect.Findings{Kernel: detect.Yes},
		Legacy: detect.Findings{Kernel: detect.Yes, Rules: 1},
	}
	lacking = detect.Evidence{NFT: detect.Findings{Kernel: detect.No}}
)

// Each row of the plan, and what comes before it.
func TestOf(t *testing.T) {
	errProc, errScarce := errors.New("no exe"), fmt.Errorf("a question: %w", unix.EMFILE)
	for _, test := range []struct {
		doc    string
		seen   Seen
		only   detect.Backend // whose program there is, "" for both
		want   string         // the plan's line for people; of an error how it begins
		is     error
		asks   bool
		proved bool
	}{
		{doc: "stored", seen: Seen{Stored: detect.NFT, Variable: "legacy", SetUID: true, NoProc: errProc},
			want: "nft (nft, stored in the switch)"},
		{doc: "set-user-ID", seen: Seen{SetUID: true, Variable: "x", NoProc: errProc}, is: ErrSetUID},
		{doc: "a wrong variable", seen: Seen{Variable: "x", NoProc: errProc}, is: ErrVariable},
		{doc: "no /proc", seen: Seen{Variable: "legacy", NoProc: errProc}, is: ErrNoProc},
		{doc: "the variable", seen: Seen{Variable: "nft", Evidence: proven, Recorded: detect.Legacy},
			want: "nft (nft, by IPTABLES_WRAPPER_BACKEND)"},
		{doc: "the variable, without a program", seen: Seen{Variable: "nft"}, only: detect.Legacy, is: ErrByVariable},

		{doc: "auto", seen: Seen{Variable: "auto", Evidence: proven}, asks: true, proved: true,
			want: "legacy (legacy, decided at each call)"},
		{doc: "proven beats the record", seen: Seen{Evidence: proven, Recorded: detect.NFT, Failed: errScarce},
			asks: true, proved: true, want: "legacy (legacy, decided at each call)"},
		{doc: "proven, without a program", seen: Seen{Evidence: proven}, only: detect.NFT, asks: true,
			is: exec.ErrMissing},
		{doc: "a guess", seen: Seen{Evidence: guessed}, asks: true, want: "legacy (legacy, decided at each call)"},
		{doc: "a guess without a program", seen: Seen{Evidence: guessed}, only: detect.NFT, asks: true,
			want: "nft (nft, decided at each call)"},
		{doc: "a guess for want of descriptors", seen: Seen{Evidence: guessed, Failed: errScarce}, asks: true,
			is: ErrScarce},
		{doc: "recorded", seen: Seen{Evidence: guessed, Recorded: detect.NFT, Failed: errScarce}, asks: true,
			want: "nft (nft, recorded: already in use here)"},
		{doc: "recorded, without a program", seen: Seen{Evidence: guessed, Recorded: detect.NFT}, only: detect.Legacy,
			asks: true, is: exec.ErrMissing},
		{doc: "the only one that the kernel has, without a program", seen: Seen{Evidence: lacking}, only: detect.NFT,
			asks: true, is: exec.ErrMissing},
	} {
		test.seen.Find = func(b detect.Backend) (exec.Program, error) {
			if test.only != "" && test.only != b {
				return exec.Program{}, exec.ErrMissing
			}
			return exec.Program{Path: string(b)}, nil
		}
		p := Of(test.seen)
		_, isSettled := Settled(test.seen)
		isWanted := p.Err == nil && p.String() == test.want || test.is != nil && errors.Is(p.Err, test.is)
		if !isWanted || p.Certain != test.proved || isSettled == test.asks {
			t.Errorf("%s: got %s, certain %v, settled %v", test.doc, p, p.Certain, isSettled)
		}
		if (p.How == Nothing) != (p.Err != nil) || (p.Err != nil) != (p.Error != "") {
			t.Errorf("%s: got %+v", test.doc, p)
		}
	}
}
