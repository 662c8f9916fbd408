// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"
	"os"
	"testing"

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
	if nft := found[evidence.NFT]; nft.Path != directory+"/xtables-nft-multi" || nft.Err != nil {
		t.Errorf("nft: got %+v", nft)
	}
	legacy := found[evidence.Legacy]
	want := `"` + directory + `/xtables-legacy-multi": it is the wrapper itself`
	if !errors.Is(legacy.Err, layout.ErrItself) || legacy.Err.Error() != want || found.Only() != "" {
		t.Errorf("legacy: got %+v", legacy)
	}
}
