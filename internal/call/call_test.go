// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"errors"
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

// A program that exists and cannot be executed is not missing.
func TestOnlyInstalled(t *testing.T) {
	missing := fmt.Errorf("%w: xtables-nft-multi", exec.ErrMissing)
	for _, test := range []struct {
		nft, legacy error
		want        detect.Mode
	}{
		{nil, nil, ""},
		{missing, missing, ""},
		{missing, nil, detect.Legacy},
		{nil, missing, detect.NFT},
		{fs.ErrPermission, nil, ""},
		{nil, exec.ErrRecursion, ""},
		{errors.New("io"), missing, ""},
	} {
		got := onlyInstalled(map[detect.Mode]error{detect.NFT: test.nft, detect.Legacy: test.legacy})
		if got != test.want {
			t.Errorf("nft %v, legacy %v: got %q", test.nft, test.legacy, got)
		}
	}
}
