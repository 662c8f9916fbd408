// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What nft makes is found by the counter that is missing, or by what iptables never makes. The rest are limits.
func TestMadeByNFT(t *testing.T) {
	host.Netns(t)
	found := []string{
		"drop", "tcp dport 22 accept", "counter tcp dport { 1, 2 } drop", "counter ip saddr { 192.0.2.1, 192.0.2.9 }",
		"counter ct state new", "counter ct mark set 1", "counter fib saddr type local", "counter reject",
		"counter dup to 192.0.2.1", "counter quota 1 mbytes", "counter meta mark set numgen inc mod 2",
		"counter ip length > 100", "counter ip saddr 192.0.2.1-192.0.2.9", "counter meta skuid 1-5", "counter ip ttl " +
			"< 3",
		"counter tcp dport vmap { 22 : drop }", "counter add @S { ip saddr }",
		"counter meta mark > 5", "counter th dport @P", "counter jhash ip saddr mod 2 vmap { 0 : drop }",
	}
	limits := []string{"tcp sequence 1 counter", "tcp window 5 counter drop", "udp length 9 counter", "tcp dport 1-9 " +
		"counter"}
	ruleset := "table ip filter {\nset S { type ipv4_addr; flags dynamic; }\nset P { type inet_service; }\n"
	for i, rule := range append(found, limits...) {
		ruleset += fmt.Sprintf("chain C%d { %s; }\n", i, rule)
	}
	host.Feed(t, ruleset+"}\n", "nft", "-f", "-")
	c := readNFT()
	for i, rule := range append(found, limits...) {
		got := c.tables[0].chains[fmt.Sprint("C", i)]
		if !c.whole || got.native != (i < len(found)) || len(got.targets) != 1 {
			t.Errorf("%s: got %+v", rule, got)
		}
	}
}

// What a rule does, and what it uses, is the same whether iptables or nft made it.
func TestEffects(t *testing.T) {
	host.Netns(t)
	for rule, want := range map[string]string{
		"drop": "DROP", "accept": "ACCEPT", "return": "RETURN",
		"reject": "REJECT", "dnat to 192.0.2.1": "DNAT", "redirect": "REDIRECT", "jump M": "M", "goto " +
			"M": "M", "counter": "",
		"masquerade": "",
	} {
		hook := map[string]string{"reject": "input", "masquerade": "postrouting"}[rule]
		if hook == "" {
			hook = "prerouting"
		}
		host.Feed(t, "flush ruleset\ntable ip nat {\nchain M {}\nchain C { type nat hook "+hook+" priority 0; "+rule+
			"; }\n}\n", "nft", "-f", "-")
		c := readNFT()
		if got := c.tables[0].chains["C"]; len(got.targets) != 1 || got.targets[0] != want {
			t.Errorf("%s: got %q, want %q", rule, got.targets, want)
		}
	}
	host.Feed(t, "*filter\n-A INPUT -m comment --comment x -j NFQUEUE\n-A INPUT -j NFQUEUE --queue-bypass\nCOMMIT\n",
		"iptables-nft-restore")
	c := readNFT()
	for _, table := range c.tables {
		if table.name == "filter" && fmt.Sprint(table.chains["INPUT"].targets) != "[NFQUEUE "+harmless+"]" {
			t.Errorf("got %q", table.chains["INPUT"].targets)
		}
	}
	if !c.uses[detect.IPv4]["-m comment"] || !c.uses[detect.IPv4]["-j NFQUEUE"] || len(c.uses[detect.IPv6]) > 0 {
		t.Errorf("uses %v", c.uses)
	}
}

// Not every kernel has nft_queue, so its expression is made here.
func TestQueue(t *testing.T) {
	const flags = 3 // NFTA_QUEUE_FLAGS
	for want, data := range map[string]nft.Attributes{
		"NFQUEUE": nft.Attributes{}.Bytes(flags, []byte{0, 0}), harmless: nft.Attributes{}.Bytes(flags, []byte{0, 1}),
	} {
		rule := nft.Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS, expression("queue", data))
		got := parseRule(rule)
		if got.target != want {
			t.Errorf("got %q, want %q", got.target, want)
		}
	}
}

// FuzzRule reads anything as a rule's expressions. With a lookup behind, the rule is always nft's.
func FuzzRule(f *testing.F) {
	data := nft.Attributes{}.BE32(unix.NFTA_META_DREG, 1).BE32(unix.NFTA_META_KEY, unix.NFT_META_MARK)
	f.Add([]byte(expression("meta", data)))
	f.Add([]byte(expression("counter", nil)))
	f.Fuzz(func(t *testing.T, expressions []byte) {
		if len(expressions) > 1<<15 {
			t.Skip("an attribute is no longer")
		}
		_ = parseRule(nft.Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS, expressions))
		before := append(expression("lookup", nil), expressions...)
		if !parseRule(nft.Attributes{}.Nest(unix.NFTA_RULE_EXPRESSIONS, before)).isNative() {
			t.Error("a lookup is taken for iptables'")
		}
	})
}

func expression(name string, data nft.Attributes) nft.Attributes {
	element := nft.Attributes{}.Text(unix.NFTA_EXPR_NAME, name).Nest(unix.NFTA_EXPR_DATA, data)
	return nft.Attributes{}.Nest(unix.NFTA_LIST_ELEM, element)
}
