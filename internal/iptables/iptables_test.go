// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package iptables

import "testing"

func TestBackendOf(t *testing.T) {
	for file, want := range map[string]string{
		"xtables-nft-multi":        "nft",
		"xtables-legacy-multi":     "legacy",
		"iptables-nft":             "nft",
		"ip6tables-legacy-restore": "legacy",

		"iptables": "", "iptables-save": "", "iptables-translate": "", "arptables-nft": "", "ebtables-nft-save": "",
		"": "",
	} {
		got := BackendOf(file)
		if got != want {
			t.Errorf("%q: got %q", file, got)
		}
	}
}

func TestRelease(t *testing.T) {
	for line, want := range map[string]struct {
		release string
		loses   bool
	}{
		"iptables v1.8.7 (nf_tables)\n": {"1.8.7", true},
		"iptables v1.8.8 (nf_tables)\n": {"1.8.8", false},
		"iptables v1.6.0":               {"1.6.0", true},
		"iptables v2.0.0":               {"2.0.0", false},
		"iptables: not found":           {"0.0.0", false},
		"":                              {"0.0.0", false},
	} {
		r := ParseRelease(line)
		if r.String() != want.release || r.LosesRules() != want.loses || r.Known() == (want.release == "0.0.0") {
			t.Errorf("%q: got %v, %v, %v", line, r, r.LosesRules(), r.Known())
		}
	}
}
