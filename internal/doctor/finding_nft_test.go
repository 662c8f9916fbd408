// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// The commands show the tables of which doctor speaks, and no others.
func TestNFTTable(t *testing.T) {
	made := []iptables.Chain{{Name: "INPUT", Base: true, Rules: []iptables.Rule{{Target: "DROP", Native: true}}}}
	s := permitted()
	s.nft.tables = []iptables.Table{{Name: "filter", Chains: made}, {Name: "nat"}, {IPv6: true, Name: "filter"}}
	found := s.nftTable()
	if found == nil || !slices.Equal(found.Look, []string{"iptables-save -t filter"}) {
		t.Errorf("got %+v", found)
	}
}

// iptables-nft crashes at rules of nft. What another process kills has not crashed.
func TestCrash(t *testing.T) {
	for signal, want := range map[string]string{"SEGV": "crashed (signal: segmentation fault", "KILL": ""} {
		s := permitted()
		s.nft.tables = []iptables.Table{{Name: "filter"}}
		err := exec.Command("sh", "-c", "ulimit -c 0; kill -"+signal+" $$").Run()
		out := run.Output{Command: "iptables-save", Err: err}
		s.saves = []save{{Output: out, backend: detect.NFT, table: "ip filter"}}
		says(t, signal, s.nftTable(), want)
	}
}
