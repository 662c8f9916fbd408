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
