// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

func TestRelease(t *testing.T) {
	for line, want := range map[string]struct {
		versionNumber string
		loses         bool
	}{
		"iptables v1.8.7 (nf_tables)\n": {"1.8.7", true},
		"iptables v1.8.8 (nf_tables)\n": {"1.8.8", false},
		"iptables v1.6.0":               {"1.6.0", true},
		"iptables v2.0.0":               {"2.0.0", false},
		"iptables: not found":           {"0.0.0", false},
		"":                              {"0.0.0", false},
	} {
		r := parseVersion(line)
		if r.String() != want.versionNumber ||
			r.losesRules() != want.loses || r.known() == (want.versionNumber == "0.0.0") {
			t.Errorf("%q: got %v, %v, %v", line, r, r.losesRules(), r.known())
		}
	}
}
