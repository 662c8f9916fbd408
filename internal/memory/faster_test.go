// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Two calls of one user at once: the slower one takes what the faster one remembered, and makes nothing of its own.
func TestFasterCall(t *testing.T) {
	f := newFake(t)
	faster, slower := f.read(), f.read()
	f.check(faster.Make(detect.Memory{Mode: detect.NFT}, Guess))
	f.check(slower.Make(detect.Memory{Mode: detect.Legacy}, Guess))
	if slower.Mode() != detect.NFT || slower.OwnPath() != faster.OwnPath() {
		t.Errorf("the slower call remembers %q in %q", slower.Mode(), slower.OwnPath())
	}
	entries, err := os.ReadDir(f.real("/run"))
	if err != nil || len(entries) != 0 {
		t.Errorf("also in /run: %v, %v", entries, err)
	}
}
