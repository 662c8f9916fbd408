// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// largeRule is a rule of some 12 KiB in a dump: more than a new socket's first part holds, and less than the whole
// buffer.
func largeRule(chain string) string {
	return "-A " + chain + strings.Repeat(" -m u32 --u32 0&0xFF=1", 6) + " -j ACCEPT\n"
}

// After a dump that was not read to its end, the next one has a new socket. What the kernel puts into its first part
// must not be less than before: a large rule would end the dump, without an error.
func TestLargeRuleAfterEnough(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n",
		1000)+"COMMIT\n*nat\n"+largeRule("POSTROUTING")+"COMMIT\n", "iptables-nft-restore")
	s := newNFTSocket(forCall)
	defer s.close()
	if got, err := s.rules(IPv4, "filter", limit{2, 1}); got[0].Count != (Count{firstRules + 4, Unbounded}) ||
		err != nil {
		t.Fatalf("got %v, %v", got, err)
	}
	if got, err := s.rules(IPv4, "nat", unlimited); got[1].Count != exactly(1) || err != nil {
		t.Errorf("got %v, %v, want the large rule", got[1], err)
	}
	for _, n := range []int{1, 2} { // the large rule has a match
		cold := newNFTSocket(forCall)
		want := exactly(1)
		if n == 1 {
			want.Max = Unbounded
		}
		if got, err := cold.rules(IPv4, "nat", limit{n, 1}); got[1].Count != want || err != nil {
			t.Errorf("first question, limit %d: got %v, %v, want %v", n, got[1], err, want)
		}
		cold.close()
	}
}
