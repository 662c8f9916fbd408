// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Rules of iptables-nft, each in a chain of its own. It prints them as they are.
var iptablesRules = []string{
	"", "-j RETURN", "-s 192.0.2.1 -j DROP", "! -s 192.0.2.0/25 -d 192.0.2.0/24 -j DROP", "-s 128.0.0.0/1 -j DROP",
	"-i eth0 -o eth+ -j ACCEPT", "! -i lo -j ACCEPT", "-p udp ! --sport 53", "-p tcp --sport 1:3 ! --dport 80:90",
	"-p udp ! --sport 0:80", "-p tcp --dport 0:1023 -j DROP",
	"-p tcp --syn -j LOG", "-p tcp ! --tcp-flags ALL SYN,ACK -j DROP", "-p icmp --icmp-type 8", "-p sctp",
	"-f -j DROP", "! -f",
	"-m mark --mark 0x4000/0x4000", "-m mark ! --mark 5 -j MARK --set-xmark 1/1", "-j NFLOG --nflog-group 3",
	"-m limit --limit 7/min --limit-burst 3 -j ACCEPT", "-m comment --comment two -m conntrack --ctstate NEW -g OTHER",
	"-p tcp -m multiport --dports 80,81 -j REJECT", "-m addrtype --dst-type LOCAL -j OTHER",
}

// The same for IPv6.
var ip6tablesRules = []string{
	"-s 2001:db8::/32 ! -d 2001:db8::1 -p tcp --dport 80 -j DROP", "-s fe80::/10 -p udp --sport 1:2", "-p icmpv6",
}

// Rules made with nft, of which iptables-nft prints a part, or nothing.
var nftRules = []string{
	"ip saddr 192.0.2.1 drop", // no counter
	"ip saddr { 192.0.2.1, 192.0.2.2 } counter drop",
	"ip saddr 192.0.2.1-192.0.2.3 counter drop",
	"ip saddr != 192.0.2.1-192.0.2.3 counter drop",
	"ip saddr > 192.0.2.1 counter drop",
	"@nh,96,64 1 counter drop",
	"@nh,72,16 1 counter drop",
	"ip saddr != 192.0.2.1 ip saddr != 192.0.2.2 counter drop",
	"ip daddr 192.0.2.1 ip daddr & 0.0.0.255 == 1 counter drop",
	"ip ttl 1 counter drop",
	"ip length 20 counter drop",
	"ip frag-off & 0x2000 != 0 counter drop",
	"ip frag-off & 0x1fff != 1 counter drop",
	"ip frag-off != 0 counter drop",
	"udp length 8 counter drop",
	"tcp sequence 1 counter drop",
	"sctp dport 80 counter drop",
	"tcp dport < 80 counter drop",
	"tcp dport > 65535 counter drop",
	"tcp dport != 0-65535 counter drop",
	"tcp dport & 1 == 1 counter drop",
	"tcp dport & 255 != 80-90 counter drop",
	"meta l4proto != tcp @th,16,16 80 counter drop",
	"meta l4proto udp @th,104,8 & 63 == 2 counter drop",
	"tcp flags == syn counter drop",
	"tcp flags & ecn == ecn counter drop",
	"tcp flags & (fin | syn) == ecn counter drop",
	"tcp flags & 0x0 == 0x2 counter drop",
	"meta l4proto 0 counter drop", // "-j DROP" to iptables-nft
	"ip protocol != 0 counter drop",
	"ip protocol & 0xfe == 6 counter drop",
	"iifname \"eth+\" counter drop",
	"oifname != \"eth+\" counter drop",
	"ip saddr & 255.255.255.0 == 192.0.2.1 counter drop",
	"limit rate 3/second ip saddr 192.0.2.1 counter drop",
	"limit rate 3/second tcp dport 80 counter drop",
	"meta mark 1 oifname \"lo\" counter drop",
	"meta mark > 5 counter drop",
	"meta mark | 2 == 3 counter drop",
	"meta skuid 5 counter drop",
	"meta length 20 counter drop",
	"ct state new counter drop",
	"fib saddr type local counter drop",
	"limit rate over 3/second counter drop",
	"limit rate 3 bytes/second counter drop",
	"limit rate 7000/second counter drop",
	"limit rate 1/week counter drop",
	"log prefix \"x\" counter",
	"counter log prefix \"x\"",
	"counter log group 3 drop",
	"counter meta mark set 5",
	"counter reject",
}

// count is how many rules a table has.
func (t inKernel) count() (sum int) {
	for _, n := range t.rules {
		sum += n
	}
	return sum
}

// entries are the lines that make a chain for each rule, called by the rule's number.
func entries(rules []string, format func(chain, rule string) string) string {
	var all strings.Builder
	for i, rule := range rules {
		all.WriteString(format("R"+string(rune('A'+i/26))+string(rune('A'+i%26)), rule))
	}
	return all.String()
}

func TestRulesOfIPTables(t *testing.T) {
	host.Netns(t)
	for family, rules := range map[detect.Family][]string{detect.IPv4: iptablesRules, detect.IPv6: ip6tablesRules} {
		lines := entries(rules, func(chain, rule string) string {
			return ":" + chain + " - [0:0]\n-A " + chain + " " + rule + "\n"
		})
		host.Feed(t, "*filter\n:OTHER - [0:0]\n"+lines+"COMMIT\n", single(detect.NFT, family, "-restore"))
		tables, err := rulesInKernel(family, false)
		got := tables["filter"]
		if err != nil || got.count() != len(rules) || len(got.native) > 0 {
			t.Errorf("%v: %d rules, not like those of iptables: %v, %v", family, got.count(), got.native, err)
		}
	}
}

func TestRulesOfNFT(t *testing.T) {
	host.Netns(t)
	lines := entries(nftRules, func(chain, rule string) string {
		return "add chain ip filter " + chain + "\nadd rule ip filter " + chain + " " + rule + "\n"
	})
	host.Feed(t, "add table ip filter\n"+lines, "nft", "-f", "-")
	tables, err := rulesInKernel(detect.IPv4, false)
	host.Check(t, err)
	got := slices.Sorted(maps.Keys(tables["filter"].native))
	want := strings.Fields(entries(nftRules, func(chain, _ string) string { return chain + "\n" }))
	if tables["filter"].count() != len(nftRules) || !slices.Equal(got, want) {
		t.Errorf("%d rules, of nft: %v, want %v", tables["filter"].count(), got, want)
	}
}

// Among the rules of a chain, those of nft are known by their place.
func TestMarkInexact(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "add table ip filter\nadd chain ip filter X\nadd chain ip filter Y\n"+
		"add rule ip filter X ip saddr 192.0.2.1 counter drop\n"+
		"add rule ip filter Y ip saddr 192.0.2.2 counter drop\n"+
		"add rule ip filter X ip saddr 192.0.2.3 drop\n"+ // no counter
		"add rule ip filter X ip saddr 192.0.2.4 counter drop\n", "nft", "-f", "-")
	text, err := exec.Command("iptables-nft-save", "-t", "filter").Output()
	host.Check(t, err)
	tables := parseSaved(detect.IPv4, string(text))
	markInexact(detect.IPv4, tables, false)
	table := tables[0]
	for _, rule := range table.rules {
		want := strings.HasPrefix(rule.spec, "-s 192.0.2.3/32 ")
		if rule.inexact != want {
			t.Errorf("got %+v", rule)
		}
	}
	if len(table.rules) != 4 || table.omits || table.exact() || !table.native["X"] || table.native["Y"] {
		t.Errorf("got %+v", table)
	}
	host.Feed(t, "add rule ip filter Y ip saddr 192.0.2.5 counter drop", "nft", "-f", "-")
	markInexact(detect.IPv4, tables, false)
	if !tables[0].omits {
		t.Error("there is one more rule than was printed")
	}
}

// Without its condition, iptables-nft 1.8.7 prints a rule for a port, TCP's flags or a mark.
func TestLosesConditions(t *testing.T) {
	host.Netns(t)
	for rule, lost := range map[string]bool{
		"ip saddr 192.0.2.0/24 meta l4proto tcp counter drop": false,
		"iifname \"eth*\" limit rate 3/second counter drop":   false,
		"tcp dport 80 counter drop":                           true,
		"tcp flags & (syn | ack) == syn counter drop":         true,
		"meta mark 1 counter drop":                            true,
	} {
		host.Feed(t, "add table ip filter\ndelete table ip filter\nadd table ip filter\nadd chain ip filter X\n"+
			"add rule ip filter X "+rule+"\n", "nft", "-f", "-")
		for _, loses := range []bool{false, true} {
			tables, err := rulesInKernel(detect.IPv4, loses)
			if err != nil || tables["filter"].count() != 1 || tables["filter"].native["X"][0] != (loses && lost) {
				t.Errorf("%s, loses conditions: %v: got %v, %v", rule, loses, tables, err)
			}
		}
	}
}

// Two rules as Linux 6.18 lists them on a little-endian machine. Table and chain are "filter" and "X". The first is of
// iptables-nft: "-p tcp --dport 80 -m limit --limit 3/s -j DROP". The second is of nft: "ip saddr
// 192.0.2.1-192.0.2.3 counter drop".
const (
	ruleOfIPTables = "" +
		"88010000060a020801000000b70f0000020000030b00010066696c746572000006000200580000000c00030000000000" +
		"000000025401040024000100090001006d6574610000000014000200080002000000001008000100000000012c000100" +
		"08000100636d700020000200080001000000000108000200000000000c0003000500010006000000340001000c000100" +
		"7061796c6f6164002400020008000100000000010800020000000002080003000000000208000400000000022c000100" +
		"08000100636d700020000200080001000000000108000200000000000c0003000600010000500000440001000a000100" +
		"6c696d6974000000340002000c00010000000000000000030c0002000000000000000001080003000000000508000400" +
		"0000000008000500000000002c0001000c000100636f756e746572001c0002000c00010000000000000000000c000200" +
		"0000000000000000300001000e000100696d6d6564696174650000001c0002000800010000000000100002000c000200" +
		"0800010000000000"
	ruleOfNFT = "" +
		"2c010000060a020801000000b70f0000020000030b00010066696c746572000006000200580000000c00030000000000" +
		"000000030c0006000000000000000002ec000400340001000c0001007061796c6f616400240002000800010000000001" +
		"0800020000000001080003000000000c08000400000000042c00010008000100636d7000200002000800010000000001" +
		"08000200000000050c00030008000100c00002012c00010008000100636d700020000200080001000000000108000200" +
		"000000030c00030008000100c00002032c0001000c000100636f756e746572001c0002000c0001000000000000000000" +
		"0c0002000000000000000000300001000e000100696d6d6564696174650000001c000200080001000000000010000200" +
		"0c0002000800010000000000"
)

// isNative puts a datagram into the tables, and reports whether it has a rule of nft.
func isNative(datagram []byte) (native bool, err error) {
	tables := map[string]inKernel{}
	_, err = takeRules(datagram, tables, false)
	return len(tables["filter"].native) > 0, err
}

// Cut anywhere, a listing is an error. A rule whose attributes are cut off is not like one of iptables.
func TestTruncatedRules(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the rules were recorded on a little-endian machine")
	}
	ours, err := hex.DecodeString(ruleOfIPTables)
	host.Check(t, err)
	theirs, err := hex.DecodeString(ruleOfNFT)
	host.Check(t, err)
	for _, test := range []struct {
		rule   []byte
		native bool
	}{
		{ours, false},
		{theirs, true},
		{slices.Concat(ours, theirs), true},
	} {
		native, err := isNative(test.rule)
		if native != test.native || err != nil {
			t.Errorf("%x: of nft %v, %v", test.rule, native, err)
		}
	}
	for size := 1; size < len(ours); size++ {
		_, err := isNative(ours[:size])
		if !errors.Is(err, netlink.ErrShort) {
			t.Errorf("cut at %d of %d bytes: %v", size, len(ours), err)
		}
	}
	const header = 16
	for size := header; size < len(ours); size += 4 {
		short := slices.Clone(ours[:size])
		binary.NativeEndian.PutUint32(short, uint32(size))
		tables := map[string]inKernel{}
		_, err := takeRules(short, tables, false)
		for name, table := range tables {
			if err == nil && len(table.native) == 0 {
				t.Errorf("attributes cut at %d of %d bytes: a rule of iptables in %q", size, len(ours), name)
			}
		}
	}
}

// A listing during which the rules changed is an error, also where only its end says so.
func TestInterruptedRules(t *testing.T) {
	for _, kind := range []uint16{unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE, unix.NLMSG_DONE} {
		datagram := netlink.Request(kind, unix.NLM_F_DUMP_INTR, 1, unix.NFPROTO_IPV4, nil)
		done, err := takeRules(datagram, map[string]inKernel{}, false)
		if done || !errors.Is(err, unix.EINTR) {
			t.Errorf("kind %#x: done %v, %v", kind, done, err)
		}
	}
}

// FuzzTakeRules feeds the parser anything as a datagram.
func FuzzTakeRules(f *testing.F) {
	for _, text := range []string{ruleOfIPTables, ruleOfNFT} {
		b, err := hex.DecodeString(text)
		host.Check(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		tables := map[string]inKernel{}
		_, _ = takeRules(datagram, tables, false)
		rules := 0
		for name, table := range tables {
			rules += table.count()
			if len(table.rules) < len(table.native) {
				t.Errorf("%q: %d chains with rules, and %d with some of nft", name, len(table.rules), len(table.native))
			}
		}
		const header = 16
		if rules*header > len(datagram) {
			t.Errorf("%d rules in %d bytes", rules, len(datagram))
		}
	})
}
