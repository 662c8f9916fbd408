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

// What can be run, and what is installed.
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
	}{
		{doc: "both", nft: there, legacy: there},
		{doc: "nft only", nft: there, legacy: missing, only: evidence.NFT},
		{doc: "legacy only", nft: missing, legacy: there, only: evidence.Legacy},
		{doc: "none", nft: missing, legacy: missing},
		{doc: "legacy cannot be executed", nft: there, legacy: unusable},
		{doc: "nft cannot be executed", nft: unusable, legacy: missing},
		{doc: "nft is the wrapper itself", nft: itself, legacy: there},
	} {
		found := Programs{evidence.NFT: test.nft, evidence.Legacy: test.legacy}
		if got := found.Only(); got != test.only {
			t.Errorf("%s: only %q", test.doc, got)
		}
	}
}
