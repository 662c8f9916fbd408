// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// The literal, and what other packages look for.
func TestMarker(t *testing.T) {
	if marker != programs.Marker() {
		t.Errorf("%q is not %q", marker, programs.Marker())
	}
}

// A remembered backend whose program is missing is none. One whose program cannot be executed says so when it is run.
func TestUsable(t *testing.T) {
	missing := fmt.Errorf("%w: xtables-nft-multi", exec.ErrMissing)
	for _, test := range []struct {
		remembered detect.Mode
		nft        error
		want       detect.Mode
	}{
		{"", nil, ""}, {"", missing, ""}, {detect.NFT, nil, detect.NFT}, {detect.NFT, missing, ""},
		{detect.NFT, fs.ErrPermission, detect.NFT}, {detect.Legacy, missing, detect.Legacy},
	} {
		if got := usable(detect.Memory{Mode: test.remembered}, map[detect.Mode]error{detect.NFT: test.nft}).Mode; got != test.want {
			t.Errorf("%q remembered, nft %v: got %q", test.remembered, test.nft, got)
		}
	}
}
