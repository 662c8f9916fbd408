// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Beside the command there are a program of one backend, and the wrapper in the place of the other's.
func TestFind(t *testing.T) {
	directory := t.TempDir()
	for _, file := range []string{"iptables", "xtables-nft-multi", "xtables-legacy-multi"} {
		host.Check(t, os.WriteFile(directory+"/"+file, nil, 0o755))
	}
	running, err := dir.IDAt(directory + "/iptables")
	host.Check(t, err)
	host.Check(t, os.Remove(directory+"/xtables-legacy-multi"))
	host.Check(t, os.Link(directory+"/iptables", directory+"/xtables-legacy-multi"))
	place := layout.Locate(directory+"/iptables", running)
	defer place.Dir.Close()
	found := find(place, running, "iptables")
	if nft := found[evidence.NFT]; nft.path != directory+"/xtables-nft-multi" || nft.err != nil {
		t.Errorf("nft: got %+v", nft)
	}
	legacy := found[evidence.Legacy]
	want := `"` + directory + `/xtables-legacy-multi": it is the wrapper itself`
	if !errors.Is(legacy.err, errItself) || legacy.err.Error() != want || found.missing(evidence.Legacy) {
		t.Errorf("legacy: got %+v", legacy)
	}
}

// What can be run, and what is installed.
func TestPrograms(t *testing.T) {
	var (
		there    = program{path: "/usr/sbin/iptables-nft"}
		missing  = program{err: exec.ErrMissing}
		unusable = program{err: &os.PathError{Op: "execute", Path: "/usr/sbin/iptables-nft", Err: unix.EACCES}}
		itself   = program{err: errItself}
	)
	for _, test := range []struct {
		doc         string
		nft, legacy program
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
		found := programs{evidence.NFT: test.nft, evidence.Legacy: test.legacy}
		if got := found.only(); got != test.only {
			t.Errorf("%s: only %q", test.doc, got)
		}
	}
}
