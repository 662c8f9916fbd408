// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
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
		"legacy: chain KUBE-IPTABLES-HINT is in legacy's mangle table (IPv4)",
		"nft: chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4)",
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

// snapshot is all that a detector could change: tables, modules, processes, files. There is no /proc/modules where the
// kernel can load none; then there is none to be loaded.
func snapshot(t *testing.T) string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	host.Check(t, err)
	return strings.Join(processes, "\n") + "\n" + host.Run(t, "sh", "-c", `
		for f in /proc/net/ip_tables_names /proc/net/ip6_tables_names /proc/modules; do echo "$f:"; cat $f 2>&1; done
		nft list ruleset
		ls -lA --time-style=full-iso /usr/sbin /etc/alternatives /dev/shm | cksum`)
}
