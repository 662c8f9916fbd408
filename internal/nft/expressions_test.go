// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// chainsOf are the rules of each chain of a table, such as "ip filter".
func chainsOf(t *testing.T, table string) map[string][]iptables.Rule {
	t.Helper()
	ruleset, err := ReadRuleset()
	host.Check(t, err)
	rules := map[string][]iptables.Rule{}
	for _, read := range ruleset.Tables {
		for _, c := range read.Chains {
			if read.String() == table {
				rules[c.Name] = c.Rules
			}
		}
	}
	return rules
}

// What nft makes is found by the counter that is missing, or by what iptables never makes. The rest are limits.
func TestMadeByNFT(t *testing.T) {
	host.Netns(t)
	found := []string{
		"drop", "tcp dport 22 accept", "counter tcp dport { 1, 2 } drop", "counter ip saddr { 192.0.2.1, 192.0.2.9 }",
		"counter ct state new", "counter ct mark set 1", "counter fib saddr type local", "counter reject",
		"counter dup to 192.0.2.1", "counter quota 1 mbytes", "counter meta mark set numgen inc mod 2",
		"counter ip length > 100", "counter ip saddr 192.0.2.1-192.0.2.9", "counter meta skuid 1-5",
		"counter ip ttl < 3", "counter tcp dport vmap { 22 : drop }", "counter add @S { ip saddr }",
		"counter meta mark > 5", "counter th dport @P", "counter jhash ip saddr mod 2 vmap { 0 : drop }",
		"counter icmp type > 5", "counter th dport 22 meta l4proto > 5",
	}
	limits := []string{
		"tcp sequence 1 counter", "tcp window 5 counter drop", "udp length 9 counter", "tcp dport 1-9 counter",
	}
	ruleset := "table ip filter {\nset S { type ipv4_addr; flags dynamic; }\nset P { type inet_service; }\n"
	for i, rule := range append(found, limits...) {
		ruleset += fmt.Sprintf("chain C%d { %s; }\n", i, rule)
	}
	host.Feed(t, ruleset+"}\n", "nft", "-f", "-")
	chains := chainsOf(t, "ip filter")
	for i, rule := range append(found, limits...) {
		got := chains[fmt.Sprint("C", i)]
		if len(got) != 1 || got[0].Native != (i < len(found)) {
			t.Errorf("%s: got %+v", rule, got)
		}
	}
}

// What a rule does, and what it uses, is the same whether iptables or nft made it.
func TestEffects(t *testing.T) {
	host.Netns(t)
	for rule, want := range map[string]string{
		"drop": "DROP", "accept": "ACCEPT", "return": "RETURN", "reject": "REJECT", "dnat to 192.0.2.1": "DNAT",
		"redirect": "REDIRECT", "jump M": "M", "goto M": "M", "counter": "", "masquerade": "",
		"meta mark set 1": "",
	} {
		hook := map[string]string{"reject": "input", "masquerade": "postrouting"}[rule]
		if hook == "" {
			hook = "prerouting"
		}
		host.Feed(t, "flush ruleset\ntable ip nat {\nchain M {}\nchain C { type nat hook "+hook+" priority 0; "+rule+
			"; }\n}\n", "nft", "-f", "-")
		got := chainsOf(t, "ip nat")["C"]
		if len(got) != 1 || got[0].Target != want {
			t.Errorf("%s: got %+v, want %q", rule, got, want)
		}
	}
	host.Feed(t, "*filter\n-A INPUT -m comment --comment x -j NFQUEUE\n-A INPUT -j NFQUEUE --queue-bypass\nCOMMIT\n",
		"iptables-nft-restore")
	got := fmt.Sprint(chainsOf(t, "ip filter")["INPUT"])
	if got != "[{NFQUEUE [-m comment -j NFQUEUE] false false} {NFQUEUE [-j NFQUEUE] true false}]" {
		t.Errorf("got %v", got)
	}
}

// Not every kernel has nft_queue, so its expression is made here.
func TestQueue(t *testing.T) {
	const flags = 3 // NFTA_QUEUE_FLAGS
	for _, bypass := range []bool{false, true} {
		value := map[bool]byte{true: 1}[bypass]
		rule := Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS,
			expression("queue", Attributes{}.Bytes(flags, []byte{0, value})))
		got := parseRule(rule)
		if got.Target != "NFQUEUE" || got.Bypass != bypass {
			t.Errorf("got %+v, want a bypass: %v", got, bypass)
		}
	}
	for size := range 8 { // of struct xt_NFQ_info_v3, whose flags begin at 4
		target := Attributes{}.Text(unix.NFTA_TARGET_NAME, "NFQUEUE").BE32(unix.NFTA_TARGET_REV, 3).
			Bytes(unix.NFTA_TARGET_INFO, bytes.Repeat([]byte{1}, size))
		got := parseRule(Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS, expression("target", target)))
		if got.Target != "NFQUEUE" || got.Bypass != (size >= 6) {
			t.Errorf("cut at %d: got %+v", size, got)
		}
	}
}

// FuzzRule reads anything as a rule's expressions. With a lookup behind, the rule is always nft's.
func FuzzRule(f *testing.F) {
	data := Attributes{}.BE32(unix.NFTA_META_DREG, 1).BE32(unix.NFTA_META_KEY, unix.NFT_META_MARK)
	f.Add([]byte(expression("meta", data)))
	f.Add([]byte(expression("counter", nil)))
	f.Fuzz(func(t *testing.T, expressions []byte) {
		if len(expressions) > 1<<15 {
			t.Skip("an attribute is no longer")
		}
		_ = parseRule(Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS, expressions))
		before := append(expression("lookup", nil), expressions...)
		if !parseRule(Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS, before)).Native {
			t.Error("a lookup is taken for iptables'")
		}
	})
}

func expression(name string, data Attributes) Attributes {
	element := Attributes{}.Text(unix.NFTA_EXPR_NAME, name).Nest(unix.NFTA_EXPR_DATA, data)
	return Attributes{}.Nest(unix.NFTA_LIST_ELEM, element)
}
