// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

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
	return netlink.Request(nftKind(unix.NFT_MSG_NEWRULE), unix.NLM_F_MULTI, 7, unix.NFPROTO_IPV4,
		netlink.Attributes{}.Text(unix.NFTA_RULE_TABLE, "filter").Text(unix.NFTA_RULE_CHAIN, "INPUT").
			Nest(unix.NFTA_RULE_EXPRESSIONS, slices.Concat(expressions...)))
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
	if a := (Query{Everything: true}).Ask().NFT[IPv4]; a.Count != want || a.Foreign != nil || a.Err != nil {
		t.Errorf("got %d, want %d, foreign %v, %v", a.Count, want, a.Foreign, a.Err)
	}
}

// FuzzRule feeds the parsers of rules and chains any attributes.
func FuzzRule(f *testing.F) {
	for _, list := range expressionLists {
		f.Add(ruleOf(list.expressions...)[unix.SizeofNlMsghdr:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := netlink.Message{Body: body}
		if m.Whole() != nil {
			t.Skip("no message that is handed out")
		}
		parseExpressions(m)
		c := parseChain(m)
		for _, part := range [][]byte{c.table, c.name, c.kind} {
			if !within(part, body) {
				t.Fatal("the parser made something up")
			}
		}
		var d ruleDump
		if d.add(m); d.read > 1 {
			t.Fatalf("got %+v", d)
		}
	})
}
