// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// What can be run, what is installed, and what may be remembered.
func TestPrograms(t *testing.T) {
	var (
		there    = Program{Path: "/usr/sbin/iptables-nft"}
		missing  = Program{Err: exec.ErrMissing}
		unusable = Program{Err: &os.PathError{Op: "execute", Path: "/usr/sbin/iptables-nft", Err: unix.EACCES}}
		itself   = Program{Err: ErrItself}
	)
	for _, test := range []struct {
		doc         string
		nft, legacy Program
		only        evidence.Mode
		remembers   [2]bool // nft, legacy
	}{
		{doc: "both", nft: there, legacy: there, remembers: [2]bool{true, true}},
		{doc: "nft only", nft: there, legacy: missing, only: evidence.NFT, remembers: [2]bool{true, false}},
		{doc: "legacy only", nft: missing, legacy: there, only: evidence.Legacy, remembers: [2]bool{false, true}},
		{doc: "none", nft: missing, legacy: missing},
		{doc: "legacy cannot be executed", nft: there, legacy: unusable, remembers: [2]bool{true, true}},
		{doc: "nft cannot be executed", nft: unusable, legacy: missing, remembers: [2]bool{true, false}},
		{doc: "nft is the wrapper itself", nft: itself, legacy: there, remembers: [2]bool{true, true}},
	} {
		found := Programs{evidence.NFT: test.nft, evidence.Legacy: test.legacy}
		if got := found.Only(); got != test.only {
			t.Errorf("%s: only %q", test.doc, got)
		}
		for i, mode := range evidence.Modes() {
			said := evidence.Decision{Mode: mode, Reason: evidence.Selected, Conclusive: true, Because: "of a select"}
			want := evidence.Decision{}
			if test.remembers[i] {
				want = said
			}
			if got := found.Runnable(said); got != want {
				t.Errorf("%s: %s is remembered: got %+v", test.doc, mode, got)
			}
		}
		if got := found.Runnable(evidence.Decision{}); got != (evidence.Decision{}) {
			t.Errorf("%s: nothing is remembered: got %+v", test.doc, got)
		}
	}
}
