// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The demonstration does what the README says, and changes nothing outside.
func TestDemo(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	t.Setenv("TMPDIR", "/run") // which the demonstration covers with its own
	before := snapshot(t)
	output := host.Run(t, "./demo.sh")
	for _, want := range []string{
		"legacy (certain: chain KUBE-IPTABLES-HINT is in legacy's mangle table (IPv4)",
		"nft (certain: chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4)",
		"iptables-restore   resolves to /usr/sbin/xtables-legacy-multi",
		"iptables-restore   resolves to /usr/sbin/xtables-nft-multi",
		"-A FORWARD -s 192.0.2.1/32 -m comment --comment demo -j DROP",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("it does not show %q:\n%s", want, output)
		}
	}
	if after := snapshot(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
