// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-iptables/iptables"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The client that most CNI plugins use, on the full path of a name. Its first call is --version, from which it reads
// the mode.
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
			check := func(err error) {
				t.Helper()
				host.Check(t, err)
			}
			check(c.NewChain("filter", "CNI-TEST"))
			check(c.AppendUnique("filter", "CNI-TEST", "-s", family.address, "-j", "DROP"))
			check(c.AppendUnique("filter", "CNI-TEST", "-s", family.address, "-j", "DROP"))
			if ok, err := c.ChainExists("filter", "CNI-TEST"); !ok || err != nil {
				t.Errorf("chain exists: got %v, %v", ok, err)
			}
			rules, err := c.List("filter", "CNI-TEST")
			if want := []string{"-N CNI-TEST", "-A CNI-TEST -s " + family.address + " -j DROP"}; err != nil || !slices.Equal(rules, want) {
				t.Errorf("got %q, %v, want %q", rules, err, want)
			}
			if got := host.Run(t, family.name+"-"+mode, "-S", "CNI-TEST"); !strings.Contains(got, family.address) {
				t.Errorf("not in %s: %q", mode, got)
			}
			check(c.ClearAndDeleteChain("filter", "CNI-TEST"))
			if ok, err := c.ChainExists("filter", "CNI-TEST"); ok || err != nil {
				t.Errorf("chain exists: got %v, %v", ok, err)
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
	installed(t)
	host.Run(t, "iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	host.Run(t, "mount", "-o", "remount,bind,ro", "/etc/alternatives") // only /usr/sbin can change
	c, err := iptables.New(iptables.Path("/usr/sbin/iptables"))
	host.Check(t, err)
	host.Run(t, "iptables-wrapper", "reset")
	for _, spoil := range []func() error{
		func() error { return os.Chmod(legacyProgram, 0o644) },
		func() error { return os.Remove(legacyProgram) },
	} {
		host.Check(t, spoil())
		for _, chain := range []string{"INPUT", "NO-SUCH-CHAIN"} {
			if ok, err := c.ChainExists("filter", chain); ok || err == nil {
				t.Errorf("%s: got %v, %v, want an error", chain, ok, err)
			}
		}
		if ok, err := c.Exists("filter", "INPUT", "-j", "DROP"); ok || err == nil {
			t.Errorf("rule: got %v, %v, want an error", ok, err)
		}
	}
}
