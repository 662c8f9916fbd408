// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// ruleOf builds a rule of chain INPUT with expressions.
func ruleOf(expressions ...netlink.Attributes) []byte {
	return nftMessage(unix.NFT_MSG_NEWRULE, unix.NLM_F_MULTI, 7, unix.NFPROTO_IPV4,
		ofTable("filter").Text(unix.NFTA_RULE_CHAIN, "INPUT").Nest(unix.NFTA_RULE_EXPRESSIONS,
			slices.Concat(expressions...)))
}

// expressions are those of a rule, in their order.
type expressions []netlink.Attributes

// The names and numbers as the kernel sends them for rules that nft and iptables-nft make.
var expressionLists = []struct {
	doc         string
	expressions expressions
	nftOnly     bool
}{
	{"none", nil, false},
	{"iptables", expressions{expression("match", nil), expression("counter", nil), expression("target", nil)}, false},
	{"a target alone", expressions{expression("target", nil)}, false},
	{"both", expressions{expression("ct", nil), expression("match", nil)}, true},
	{"translated by iptables-nft", expressions{
		expression("payload", nil), expression("bitwise", nil), expression("meta", nil), expression("cmp", nil),
		expression("range", nil), expression("lookup", nil), expression("immediate", nil)}, false},
	{"conntrack", expressions{expression("ct", nil), expression("immediate", nil)}, true},
	{"last one", expressions{expression("counter", nil), expression("reject", nil)}, true},
	{"longer name", expressions{expression("counters", nil)}, true},
	{"no name", expressions{netlink.Attributes{}.Nest(unix.NFTA_LIST_ELEM, nil)}, true},
	{"limit", expressions{expression("limit", netlink.Attributes{}.BE32(unix.NFTA_LIMIT_TYPE,
		unix.NFT_LIMIT_PKTS).BE32(unix.NFTA_LIMIT_FLAGS, 0))}, false},
	{"limit, Linux 4.2", expressions{expression("limit", netlink.Attributes{}.BE32(unix.NFTA_LIMIT_RATE, 1))}, false},
	{"limit of bytes", expressions{expression("limit", netlink.Attributes{}.BE32(unix.NFTA_LIMIT_TYPE,
		unix.NFT_LIMIT_PKT_BYTES).BE32(unix.NFTA_LIMIT_FLAGS, 0))}, true},
	{"limit over", expressions{expression("limit", netlink.Attributes{}.BE32(unix.NFTA_LIMIT_TYPE,
		unix.NFT_LIMIT_PKTS).BE32(unix.NFTA_LIMIT_FLAGS, unix.NFT_LIMIT_F_INV))}, true},
	{"log", expressions{expression("log", netlink.Attributes{}.Text(unix.NFTA_LOG_PREFIX, "x"))}, true},
	{"log to group 0", expressions{expression("log", netlink.Attributes{}.Bytes(unix.NFTA_LOG_GROUP, []byte{0, 0}))},
		false},
}

func TestParseExpressions(t *testing.T) {
	for _, test := range expressionLists {
		b := ruleOf(test.expressions...)
		m, _, err := netlink.Next(b)
		if err != nil {
			t.Fatal(err)
		}
		err = m.Whole()
		xt, nftOnly := parseExpressions(m)
		if wantXT := test.doc == "iptables" || test.doc == "a target alone" || test.doc == "both"; xt != wantXT ||
			nftOnly != test.nftOnly || err != nil {
			t.Errorf("%s: got %v, %v, %v, want %v, %v", test.doc, xt, nftOnly, err, wantXT, test.nftOnly)
		}
		// Whatever is cut off, it is not taken for a rule that iptables-nft cannot print, nor for one that it has made.
		for i := range m.Body {
			cut := m
			cut.Body = m.Body[:i]
			if cut.Whole() != nil {
				continue
			}
			if gotXT, got := parseExpressions(cut); got && !nftOnly || gotXT && !xt {
				t.Errorf("%s, cut at %d: got %v, %v", test.doc, i, gotXT, got)
			}
		}
	}
}

// Rules that nft adds to iptables' own chains, or to a chain beside them, as iptables-nft-save sees them.
func TestNativeRules(t *testing.T) {
	for _, test := range []struct {
		rule   string
		native bool
	}{
		{"ct state established accept", true},
		{"reject", true},
		{"limit rate over 5/second drop", true},
		{"limit rate 5 bytes/second accept", true},
		{"log", true},
		{"limit rate 5/second accept", false},
		{"log group 1", false},
		{"tcp dport 22 accept", false},
		{"accept", false},
		{"counter", false},
	} {
		for _, chain := range []string{"INPUT", "MINE"} {
			t.Run(test.rule+" in "+chain, func(t *testing.T) {
				host.Netns(t)
				nftScript(t, "add table ip filter; add chain ip filter INPUT { type filter hook input priority 0; }; "+
					"add chain ip filter MINE"+
					"; add rule ip filter INPUT accept; add rule ip filter "+chain+" "+test.rule+"; "+
					"add rule ip filter "+chain+" accept")
				if got := strings.Count(host.Run(t, "iptables-nft-save"), "\n-A ") == 0; got != test.native {
					t.Fatalf("iptables-nft-save refuses it: %v", got)
				}
				host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
				host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
				host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
				for _, q := range []Query{{}, {Everything: true}} {
					r := q.Run()
					e := r.Of(NFT, IPv4)
					want := Result{Mode: NFT, Reason: RuleCount, Conclusive: true}
					if test.native {
						want = Result{Mode: Legacy, Reason: RuleCount}
						if !slices.Equal(e.Foreign, []Chain{{"filter", chain}}) || e.Rules.Min != 0 || e.Rules.Max < 3 {
							t.Errorf("%+v: got %v, foreign %v", q, e.Rules, e.Foreign)
						}
					} else if e.Foreign != nil {
						t.Errorf("%+v: got foreign %v", q, e.Foreign)
					}
					if r.Mode != want.Mode || r.Reason != want.Reason || r.Conclusive != want.Conclusive {
						t.Errorf("%+v: got %v, conclusive %v", q, r, r.Conclusive)
					}
				}
				if test.native { // four are more than its three at most
					host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
					if r := Host(); r.Mode != Legacy || !r.Conclusive {
						t.Errorf("four in legacy: got %v, conclusive %v", r, r.Conclusive)
					}
				}
			})
		}
	}
}

// Other tables count as ever, and one rule of theirs is enough.
func TestNativeRulesBesideOthers(t *testing.T) {
	host.Netns(t)
	nftScript(t, "add table ip filter; add chain ip filter INPUT { type filter hook input priority 0; }; "+
		"add rule ip filter INPUT ct state new accept; add rule ip filter INPUT accept")
	if r := Host(); r.Reason != Default || r.Conclusive || r.Of(NFT, IPv4).Rules != (Count{0, 2}) {
		t.Errorf("alone: got %v, conclusive %v, %v", r, r.Conclusive, r.Of(NFT, IPv4).Rules)
	}
	host.Run(t, "iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE")
	if r := Host(); r.Mode != NFT || r.Reason != RuleCount || !r.Conclusive || r.Of(NFT, IPv4).Rules.Min != 1 {
		t.Errorf("beside iptables' rule: got %v, conclusive %v, %v", r, r.Conclusive, r.Of(NFT, IPv4).Rules)
	}
}

// What iptables-nft makes of its options is not taken for somebody else's.
func TestRulesOfIptables(t *testing.T) {
	host.Netns(t)
	rules := `*filter
:MINE - [0:0]
-A INPUT -m limit --limit 5/min -j ACCEPT
-A INPUT -j LOG --log-prefix x
-A INPUT -j NFLOG
-A INPUT -j NFLOG --nflog-group 3
-A INPUT -m comment --comment x -p tcp -m tcp --dport 22:80 -j ACCEPT
-A INPUT -p udp -m udp ! --sport 5:9 -j REJECT
-A INPUT -p tcp -m multiport --dports 1,2 -g MINE
-A FORWARD ! -s 192.0.2.0/24 -d 192.0.2.1 -i a+ ! -o b -j DROP
-A INPUT -m conntrack --ctstate NEW -m addrtype --dst-type LOCAL -m mark --mark 1/3 -j MINE
-A INPUT -m iprange --src-range 192.0.2.1-192.0.2.9 -m statistic --mode nth --every 2 --packet 0
-A MINE -f -j DROP
-A MINE -p icmp -m icmp --icmp-type 8 -j RETURN
COMMIT
*nat
-A POSTROUTING -o eth0 -j MASQUERADE
-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination 192.0.2.1:8080
COMMIT
*raw
-A PREROUTING -j TRACE
-A PREROUTING -j CT --notrack
COMMIT
*mangle
-A PREROUTING -j MARK --set-xmark 0x1/0x1
-A POSTROUTING -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
COMMIT
`
	host.Feed(t, rules, "iptables-nft-restore")
	want := strings.Count(rules, "-A ")
	if got := strings.Count(host.Run(t, "iptables-nft-save"), "\n-A "); got != want {
		t.Fatalf("iptables-nft-save prints %d rules of %d", got, want)
	}
	if e := (Query{Everything: true}).Run().Of(NFT, IPv4); e.Rules != exactly(want) || e.Foreign != nil ||
		e.Err != nil {
		t.Errorf("got %v, want %d, foreign %v, %v", e.Rules, want, e.Foreign, e.Err)
	}
}
