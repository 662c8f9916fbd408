// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import "testing"

func TestPagesOf(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":                             "v1.2.3",
		"v1.2.3-4-g0123456":                  "main",
		"v1.2.3-dirty":                       "main",
		"0123456":                            "main",
		"v0.0.0-20260102030405-0123456789ab": "main",
		"(devel)":                            "main",
		"unknown":                            "main",
	} {
		got := pagesOf(version)
		if got != want {
			t.Errorf("%s: got %s", version, got)
		}
	}
}
