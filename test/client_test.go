// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"

	"github.com/coreos/go-iptables/iptables"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The client that most CNI plugins use, on the full path of a name. Its first call is --version, from which it reads
// the mode. test/clients runs its own tests.
func TestGoIptables(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode string) {
		for _, family := range []struct {
			protocol iptables.Protocol
			name     string
			address  string
		}{{iptables.ProtocolIPv4, "iptables", "192.0.2.1/32"}, {iptables.ProtocolIPv6, "ip6tables", "2001:db8::1/128"}} {
			c, err := iptables.New(iptables.IPFamily(family.protocol), iptables.Path("/usr/sbin/"+family.name))
			host.Check(t, err)
			if ok, err := c.ChainExists("filter", "CNI-TEST"); ok || err != nil {
				t.Fatalf("chain exists: got %v, %v", ok, err)
			}
			for range 2 {
				host.Check(t, c.AppendUnique("filter", "INPUT", "-s", family.address, "-j", "DROP"))
			}
			if got := host.Run(t, family.name+"-"+mode, "-S", "INPUT"); strings.Count(got, family.address) != 1 {
				t.Errorf("in %s: %q", mode, got)
			}
		}
		wantNames(t, "/usr/sbin/xtables-"+mode+"-multi")
	})
}

// A failure of the wrapper must not look like "there is no such chain", which is status 1.
func TestGoIptablesIsNotFooled(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	hostWithHint(t, "legacy")
	c, err := iptables.New(iptables.Path("/usr/sbin/iptables"))
	host.Check(t, err)
	host.Run(t, "iptables-wrapper", "reset")
	for _, spoil := range []string{"chmod 644 ", "rm "} {
		host.Run(t, "sh", "-c", spoil+legacyProgram)
		if ok, err := c.ChainExists("filter", "NO-SUCH-CHAIN"); ok || err == nil {
			t.Errorf("chain: got %v, %v, want an error", ok, err)
		}
		if ok, err := c.Exists("filter", "INPUT", "-j", "DROP"); ok || err == nil {
			t.Errorf("rule: got %v, %v, want an error", ok, err)
		}
	}
}
