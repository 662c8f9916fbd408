// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nft

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const hint = "KUBE-IPTABLES-HINT"

// script feeds nft commands.
func script(t *testing.T, commands string) {
	t.Helper()
	host.Feed(t, commands, "nft", "-f", "-")
}

// A chain is asked for by its whole name, in its table and family.
func TestHasChain(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-t", "mangle", "-N", hint)
	var c Conn
	defer c.Close()
	for _, test := range []struct {
		doc          string
		ipv6         bool
		table, chain string
		want         bool
	}{
		{"there", false, "mangle", hint, true},
		{"another family", true, "mangle", hint, false},
		{"another table", false, "filter", hint, false},
		{"no such table", false, "raw", hint, false},
		{"the beginning of a name", false, "mangle", "KUBE-IPTABLES-HIN", false},
		{"more than a name", false, "mangle", hint + "S", false},
	} {
		has, err := c.HasChain(test.ipv6, test.table, test.chain)
		if has != test.want || err != nil {
			t.Errorf("%s: got %v, %v", test.doc, has, err)
		}
	}
}

// nf_tables is there, whatever is in it. A subsystem that the kernel does not have is absent, and so is nf_tables where
// there is no nfnetlink at all.
func TestPresent(t *testing.T) {
	host.Netns(t)
	var c Conn
	defer c.Close()
	present, err := c.Present()
	if !present || err != nil {
		t.Errorf("got %v, %v", present, err)
	}
	const none = 0x7f01 // a question to subsystem 0x7f
	err = c.ask(none, 0, unix.AF_UNSPEC, nil, func(Message) error { return nil })
	if err != refused(unix.EINVAL) { // so Present takes that for absent
		t.Errorf("another subsystem: got %v", err)
	}
	host.RefuseCall(t, unix.SYS_SOCKET, unix.EPROTONOSUPPORT)
	var without Conn
	present, err = without.Present()
	has, hasErr := without.HasChain(false, "mangle", hint)
	hasTable, tableErr := without.HasTable(false, "mangle")
	rules, rulesErr := without.CountRules(math.MaxInt, every)
	if present || has || hasTable || rules != (Rules{All: true}) ||
		errors.Join(err, hasErr, tableErr, rulesErr) != nil {
		t.Errorf("without nfnetlink: got %v, %v, %v, %+v, %v", present, has, hasTable, rules,
			errors.Join(err, hasErr, tableErr, rulesErr))
	}
}

var every = []string{"filter", "nat", "t"}

// Without CAP_NET_ADMIN nf_tables refuses to answer, and that is not the same as "no".
func TestNotPermitted(t *testing.T) {
	host.Netns(t)
	host.DropCapability(t, unix.CAP_NET_ADMIN)
	var c Conn
	defer c.Close()
	_, has := c.HasChain(false, "mangle", hint)
	_, table := c.HasTable(false, "mangle")
	rules, count := c.CountRules(math.MaxInt, every)
	for _, err := range []error{has, table, count} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("got %v", err)
		}
	}
	if rules.All {
		t.Errorf("got %+v", rules)
	}
}

// A table is asked for by its whole name, in its family.
func TestHasTable(t *testing.T) {
	host.Netns(t)
	script(t, "add table ip kube-proxy\nadd table inet both\n")
	var c Conn
	defer c.Close()
	for _, test := range []struct {
		doc   string
		ipv6  bool
		table string
		want  bool
	}{
		{"there", false, "kube-proxy", true},
		{"another family", true, "kube-proxy", false},
		{"the beginning of a name", false, "kube-prox", false},
		{"more than a name", false, "kube-proxys", false},
		{"family inet", false, "both", false},
	} {
		has, err := c.HasTable(test.ipv6, test.table)
		if has != test.want || err != nil {
			t.Errorf("%s: got %v, %v", test.doc, has, err)
		}
	}
}

// Rules of ip and ip6 count, in the tables that are chosen.
func TestCountRulesByTable(t *testing.T) {
	for family, want := range map[string]int{"ip": 2, "ip6": 2, "inet": 0, "bridge": 0, "arp": 0, "netdev": 0} {
		t.Run(family, func(t *testing.T) {
			host.Netns(t)
			for _, table := range []string{"t", "other"} {
				script(t, fmt.Sprintf("add table %[1]s %[2]s\nadd chain %[1]s %[2]s c\nadd rule %[1]s %[2]s c accept\n"+
					"add rule %[1]s %[2]s c counter drop\n", family, table))
			}
			var c Conn
			defer c.Close()
			rules, err := c.CountRules(math.MaxInt, []string{"t"})
			if rules != (Rules{Number: want, All: true}) || err != nil {
				t.Errorf("got %+v, %v", rules, err)
			}
		})
	}
}

// Reading ends where there are more rules than the limit. What is left to read does not block the next question. A
// large rule in a later table does not end a dump unnoticed.
func TestCountRulesToLimit(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -s 192.0.2.1 -j DROP\n", 1000)+"COMMIT\n*nat\n"+
		strings.Repeat(largeRule, 3)+"-A POSTROUTING -m comment --comment x\nCOMMIT\n", "iptables-nft-restore")
	for limit, want := range map[int]Rules{
		0:              {Number: 1, More: true},
		100:            {Number: 101, More: true},
		1003:           {Number: 1004, More: true},
		1004:           {Number: 1004, All: true},
		math.MaxInt:    {Number: 1004, All: true},
		MaxObjects * 2: {Number: 1004, All: true},
	} {
		var c Conn
		rules, err := c.CountRules(limit, every)
		if rules != want || err != nil {
			t.Errorf("%d: got %+v, %v", limit, rules, err)
		}
		has, err := c.HasChain(false, "mangle", hint)
		if has || err != nil {
			t.Errorf("%d, then: got %v, %v", limit, has, err)
		}
		rules, err = c.CountRules(math.MaxInt, every)
		if rules.Number != 1004 || !rules.All || err != nil {
			t.Errorf("%d, then: got %+v, %v", limit, rules, err)
		}
		c.Close()
	}
}

// largeRule takes some 12 KiB of a dump, which is more than the kernel puts into the first part of one.
var largeRule = "-A POSTROUTING" + strings.Repeat(" -m u32 --u32 0&0xFF=1", 6) + " -j ACCEPT\n"

// A large rule alone is counted, also where the dump is the first question that is asked.
func TestCountLargeRule(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "*nat\n"+largeRule+"COMMIT\n", "iptables-nft-restore")
	var c Conn
	defer c.Close()
	rules, err := c.CountRules(math.MaxInt, every)
	if rules != (Rules{Number: 1, All: true}) || err != nil {
		t.Errorf("got %+v, %v", rules, err)
	}
}

// A bound is no answer: where a family has more rules than are read, each table is counted by itself. One that is full
// has more than any limit. Tables of inet are not read.
func TestTooLarge(t *testing.T) {
	host.Netns(t)
	const size = MaxObjects + 1
	var c Conn
	defer c.Close()
	fill := func(table string, rules int) {
		script(t, fmt.Sprintf("add table %[1]s\nadd chain %[1]s c\n", table)+
			strings.Repeat("add rule "+table+" c accept\n", rules))
	}
	fill("inet t", size)
	rules, err := c.CountRules(math.MaxInt, every)
	if rules != (Rules{All: true}) || err != nil {
		t.Errorf("inet: got %+v, %v", rules, err)
	}
	fill("ip native", size) // made first, so it is first in a dump
	fill("ip filter", 10)
	fill("ip6 nat", 2)
	for limit, want := range map[int]Rules{
		math.MaxInt: {Number: 12, All: true},
		10:          {Number: 11, More: true},
		3:           {Number: 4, More: true},
	} {
		rules, err := c.CountRules(limit, every)
		if rules != want || err != nil {
			t.Errorf("%d: got %+v, %v", limit, rules, err)
		}
	}
	fill("ip t", size)
	rules, err = c.CountRules(math.MaxInt, every)
	if rules != (Rules{Number: 10 + MaxObjects, More: true}) || err != nil {
		t.Errorf("a full table: got %+v, %v", rules, err)
	}
	read := 0
	err = c.Dump(unix.NFT_MSG_GETRULE, unix.NFPROTO_INET, func(Message) error {
		read++
		return nil
	})
	if !errors.Is(err, ErrTooLarge) || read != MaxObjects {
		t.Errorf("got %v after %d rules", err, read)
	}
}

// A commit between two parts of a dump makes it fail.
func TestChangedDump(t *testing.T) {
	host.Netns(t)
	script(t, "add table ip t\nadd chain ip t c\n"+strings.Repeat("add rule ip t c accept\n", 5000))
	var c Conn
	defer c.Close()
	read := 0
	err := c.Dump(unix.NFT_MSG_GETRULE, unix.NFPROTO_IPV4, func(Message) error {
		read++
		if read == 1 {
			script(t, "add table inet other\n")
		}
		return nil
	})
	if !errors.Is(err, iptables.ErrChanged) || read == 0 {
		t.Errorf("got %v after %d rules", err, read)
	}
	rules, err := c.CountRules(math.MaxInt, every)
	if rules != (Rules{Number: 5000, All: true}) || err != nil {
		t.Errorf("again: got %+v, %v", rules, err)
	}
}

// A reply without the object does not prove that there is none.
func TestCheckFound(t *testing.T) {
	for _, test := range []struct {
		found bool
		err   error
		want  error
	}{
		{found: true},
		{err: refused(unix.ENOENT)},
		{err: unix.ENOENT, want: unix.ENOENT}, // of a system call
		{want: errShort},
		{err: unix.EPERM, want: unix.EPERM},
	} {
		got := checkFound(test.found, test.err)
		if got != test.want {
			t.Errorf("%v, %v: got %v", test.found, test.err, got)
		}
	}
}
