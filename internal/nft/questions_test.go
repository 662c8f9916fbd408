// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nft

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	if err != unix.EINVAL { // so Present takes that for absent
		t.Errorf("another subsystem: got %v", err)
	}
	host.RefuseCall(t, unix.SYS_SOCKET, unix.EPROTONOSUPPORT)
	var without Conn
	present, err = without.Present()
	has, hasErr := without.HasChain(false, "mangle", hint)
	tables, tablesErr := without.Tables(everyTable)
	rules, rulesErr := without.CountRules(math.MaxInt, nobodys)
	if present || has || tables != nil || rules != (Rules{All: true}) ||
		errors.Join(err, hasErr, tablesErr, rulesErr) != nil {
		t.Errorf("without nfnetlink: got %v, %v, %v, %+v, %v", present, has, tables, rules,
			errors.Join(err, hasErr, tablesErr, rulesErr))
	}
}

func nobodys(string) bool { return false }

func everyTable(string) bool { return true }

// Only the kernel's reply says that there is nothing, whatever error a system call fails with.
func TestRefusedCallIsNoAnswer(t *testing.T) {
	for name, number := range map[string]uint32{
		"socket": unix.SYS_SOCKET, "sendto": unix.SYS_SENDTO, "recvfrom": unix.SYS_RECVFROM,
	} {
		for _, errno := range []unix.Errno{
			unix.ENOENT, unix.EINVAL, unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EMFILE,
		} {
			t.Run(fmt.Sprint(name, " ", unix.ErrnoName(errno)), func(t *testing.T) {
				host.Netns(t)
				host.RefuseCall(t, number, errno)
				var c Conn
				defer c.Close()
				_, present := c.Present()
				_, has := c.HasChain(false, "mangle", hint)
				_, tables := c.Tables(everyTable)
				rules, count := c.CountRules(math.MaxInt, nobodys)
				lacks, dryRun := c.Lacks()
				for _, err := range []error{present, has, tables, count, dryRun} {
					if !errors.Is(err, errno) {
						t.Errorf("got %v", err)
					}
				}
				if rules != (Rules{}) || lacks != "" {
					t.Errorf("got %+v, %q", rules, lacks)
				}
			})
		}
	}
}

// Without CAP_NET_ADMIN nf_tables refuses to answer, and that is not the same as "no".
func TestNotPermitted(t *testing.T) {
	host.Netns(t)
	host.DropCapability(t, unix.CAP_NET_ADMIN)
	var c Conn
	defer c.Close()
	_, has := c.HasChain(false, "mangle", hint)
	_, tables := c.Tables(everyTable)
	rules, count := c.CountRules(math.MaxInt, nobodys)
	for _, err := range []error{has, tables, count} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("got %v", err)
		}
	}
	if rules.All {
		t.Errorf("got %+v", rules)
	}
}

func TestTables(t *testing.T) {
	host.Netns(t)
	var c Conn
	defer c.Close()
	tables, err := c.Tables(everyTable)
	if len(tables) != 0 || err != nil {
		t.Errorf("an empty host: got %v, %v", tables, err)
	}
	script(t, "add table inet firewalld\nadd table ip filter\nadd table ip6 kube-proxy\nadd table bridge x\n"+
		"add table arp y\nadd table netdev z\n")
	tables, err = c.Tables(everyTable)
	want := []string{"inet firewalld", "ip filter", "ip6 kube-proxy", "bridge x", "arp y", "netdev z"}
	if len(tables) != len(want) || err != nil {
		t.Fatalf("got %v, %v", tables, err)
	}
	for _, table := range want {
		if !slices.Contains(tables, table) {
			t.Errorf("%q is not in %q", table, tables)
		}
	}
}

// Rules count that packets of IPv4 or IPv6 pass in the network layer.
func TestCountRulesByFamily(t *testing.T) {
	for family, want := range map[string]int{"ip": 2, "ip6": 2, "inet": 2, "bridge": 0, "arp": 0, "netdev": 0} {
		t.Run(family, func(t *testing.T) {
			host.Netns(t)
			script(t, fmt.Sprintf("add table %[1]s t\nadd chain %[1]s t c\nadd rule %[1]s t c accept\n"+
				"add rule %[1]s t c counter drop\n", family))
			var c Conn
			defer c.Close()
			var asked []string
			rules, err := c.CountRules(math.MaxInt, func(table string) bool {
				asked = append(asked, table)
				return true
			})
			if rules != (Rules{Number: want, Iptables: want > 0, All: true}) || err != nil {
				t.Errorf("got %+v, %v", rules, err)
			}
			if slices.ContainsFunc(asked, func(table string) bool { return table != family+" t" }) {
				t.Errorf("asked for %v", asked)
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
	isNAT := func(table string) bool { return table == "ip nat" }
	for limit, want := range map[int]Rules{
		0:              {Number: 1001, Iptables: true},
		100:            {Number: 1001, Iptables: true},
		1003:           {Number: 1004, Iptables: true},
		1004:           {Number: 1004, Iptables: true, All: true},
		math.MaxInt:    {Number: 1004, Iptables: true, All: true},
		MaxObjects * 2: {Number: 1004, Iptables: true, All: true},
	} {
		var c Conn
		rules, err := c.CountRules(limit, isNAT)
		if rules != want || err != nil {
			t.Errorf("%d: got %+v, %v", limit, rules, err)
		}
		has, err := c.HasChain(false, "mangle", hint)
		if has || err != nil {
			t.Errorf("%d, then: got %v, %v", limit, has, err)
		}
		rules, err = c.CountRules(math.MaxInt, isNAT)
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
	rules, err := c.CountRules(math.MaxInt, nobodys)
	if rules != (Rules{Number: 1, All: true}) || err != nil {
		t.Errorf("got %+v, %v", rules, err)
	}
}

// Of more objects than can be read, those that were read count.
func TestTooLarge(t *testing.T) {
	host.Netns(t)
	const size = MaxObjects + 1
	script(t, "add table inet t\nadd chain inet t c\n"+strings.Repeat("add rule inet t c accept\n", size))
	var c Conn
	defer c.Close()
	rules, err := c.CountRules(math.MaxInt, nobodys)
	if rules != (Rules{Number: MaxObjects}) || err != nil {
		t.Errorf("got %+v, %v", rules, err)
	}
	read := 0
	err = c.Dump(unix.NFT_MSG_GETRULE, unix.NFPROTO_INET, func(Message) error {
		read++
		return nil
	})
	if !errors.Is(err, ErrTooLarge) || read != MaxObjects {
		t.Errorf("got %v after %d rules", err, read)
	}
	rules, err = c.CountRules(MaxObjects-1, nobodys)
	if rules != (Rules{Number: MaxObjects}) || err != nil {
		t.Errorf("up to a limit: got %+v, %v", rules, err)
	}
}

// A commit between two parts of a dump makes it fail, with the number of the rules that were read before.
func TestChangedDump(t *testing.T) {
	host.Netns(t)
	script(t, "add table inet t\nadd chain inet t c\n"+strings.Repeat("add rule inet t c accept\n", 5000))
	var c Conn
	defer c.Close()
	changed := false
	rules, err := c.CountRules(math.MaxInt, func(string) bool {
		if !changed {
			script(t, "add table inet other\n")
			changed = true
		}
		return false
	})
	if !errors.Is(err, ErrChanged) || rules.All || rules.Number == 0 {
		t.Errorf("got %+v, %v", rules, err)
	}
	rules, err = c.CountRules(math.MaxInt, nobodys)
	if rules != (Rules{Number: 5000, All: true}) || err != nil {
		t.Errorf("again: got %+v, %v", rules, err)
	}
}
