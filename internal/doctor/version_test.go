// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

func TestIsOld(t *testing.T) {
	for line, want := range map[string]bool{
		"iptables v1.8.7 (nf_tables)": true,
		"iptables v1.8.8 (nf_tables)": false,
		"iptables v1.6.0":             true,
		"iptables v2.0.0":             false,
		"iptables: not found":         false,
		"":                            false,
	} {
		if got := isOld(line); got != want {
			t.Errorf("%q: got %v", line, got)
		}
	}
}
