// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// The literal, and what other packages look for.
func TestMarker(t *testing.T) {
	if marker != programs.Marker() {
		t.Errorf("%q is not %q", marker, programs.Marker())
	}
}
