// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"testing"
)

// A wrapper is an ELF file with the marker, wherever it is in it. A script that contains the marker is none.
func TestHasMarker(t *testing.T) {
	const block = 64 << 10
	for _, test := range []struct {
		doc     string
		content string
		want    bool
	}{
		{"nothing", "", false},
		{"another program", "\x7fELF and more", false},
		{"a wrapper", "\x7fELF" + Marker(), true},
		{"a script", "#!/bin/sh\n# " + Marker(), false},
		{"at the end of the first block", "\x7fELF" + strings.Repeat("x", block-4-len(Marker())) + Marker(), true},
		{"across two blocks", "\x7fELF" + strings.Repeat("x", block-24) + Marker(), true},
		{"in the third block", "\x7fELF" + strings.Repeat("x", 2*block) + Marker(), true},
		{"not the whole marker", "\x7fELF" + Marker()[1:], false},
	} {
		got := HasMarker(strings.NewReader(test.content))
		if got != test.want {
			t.Errorf("%s: got %v", test.doc, got)
		}
	}
}
