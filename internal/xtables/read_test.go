// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xtables

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// restore feeds iptables-legacy-restore a table's lines.
func restore(t *testing.T, family, table, lines string) {
	t.Helper()
	host.Feed(t, "*"+table+"\n"+lines+"COMMIT\n", family+"-legacy-restore", "-w")
}

// Of each family and table, chains and rules are what iptables-legacy has put there.
func TestRead(t *testing.T) {
	host.Netns(t)
	const lines = ":MINE - [0:0]\n:YOURS - [0:0]\n-A OUTPUT -j MINE\n-A MINE -m comment --comment x -j YOURS\n"
	for family, ipv6 := range map[string]bool{"iptables": false, "ip6tables": true} {
		for _, table := range []string{"filter", "nat", "mangle", "raw", "security"} {
			restore(t, family, table, lines)
			got, err := Read(ipv6, table, every)
			if err != nil || sortedChains(got) != "MINE YOURS" || got.Rules != 2 || !got.Whole {
				t.Errorf("%s, %s: got %q, %+v, %v", family, table, sortedChains(got), got, err)
			}
		}
	}
}

// Of a larger table, it is known how many entries it has.
func TestReadTooLarge(t *testing.T) {
	host.Netns(t)
	const rules = Limit/112 + 1 // an entry has more than 112 bytes
	restore(t, "iptables", "filter", ":MINE - [0:0]\n"+strings.Repeat("-A MINE -j DROP\n", rules))
	got, err := Read(false, "filter", every)
	const others = 3 + 2 + 1 // policies, the chain's head and end, the end of the table
	if err != nil || got.Whole || got.Chains != nil || got.Rules != rules+others {
		t.Errorf("got %d entries, whole %v, %v", got.Rules, got.Whole, err)
	}
}

// A table of another size than a moment ago was replaced.
func TestReadChanged(t *testing.T) {
	host.Netns(t)
	restore(t, "iptables", "filter", "-A INPUT -j ACCEPT\n")
	host.RefuseOption(t, soGetEntries, unix.EAGAIN)
	got, err := Read(false, "filter", every)
	if !errors.Is(err, iptables.ErrChanged) || got.Whole || got.Rules != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What cannot be read is no empty table.
func TestReadRefused(t *testing.T) {
	for _, test := range []struct {
		doc    string
		refuse func(t *testing.T)
		want   unix.Errno
	}{
		{"without CAP_NET_ADMIN", func(t *testing.T) { host.DropCapability(t, unix.CAP_NET_ADMIN) }, unix.EPERM},
		{"no socket", func(t *testing.T) { host.RefuseCall(t, unix.SYS_SOCKET, unix.EMFILE) }, unix.EMFILE},
		{
			"a filter of address families",
			func(t *testing.T) { host.RefuseCall(t, unix.SYS_SOCKET, unix.EAFNOSUPPORT) },
			unix.EAFNOSUPPORT,
		},
		{"no header", func(t *testing.T) { host.RefuseOption(t, soGetInfo, unix.EACCES) }, unix.EACCES},
		{"no entries", func(t *testing.T) { host.RefuseOption(t, soGetEntries, unix.ENOMEM) }, unix.ENOMEM},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			restore(t, "iptables", "filter", "-A INPUT -j ACCEPT\n")
			test.refuse(t)
			got, err := Read(false, "filter", every)
			if !errors.Is(err, test.want) || got.Whole || got.Rules != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
