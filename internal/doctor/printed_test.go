// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// nftConditions has conditions of nft in groups, each about one thing.
var nftConditions = [][]string{
	{
		"ip saddr 10.0.0.1", "ip saddr != 10.0.0.0/8", "ip saddr 10.16.0.0/12", "ip saddr 10.0.0.1-10.0.0.3",
		"ip saddr & 0.0.0.255 == 0.0.0.1", "ip saddr & 255.255.255.0 == 10.0.0.1", "ip saddr > 10.0.0.1",
		"ip saddr { 10.0.0.1, 10.0.0.2 }", "@nh,96,16 0x0a00",
	},
	{
		"ip protocol 0", "meta l4proto 0", "ip protocol tcp", "meta l4proto != udp", "ip protocol & 0xfe == 6",
		"meta l4proto 255", "ip protocol > 6",
	},
	{"iifname \"eth0\"", "iifname \"eth*\"", "iifname != \"eth+\"", "iifname != \"e\"", "iifname \"abcdefghijklmn*\""},
	{
		"tcp dport 80", "udp dport != 80-90", "tcp dport <= 80", "tcp dport < 80", "udp sport 80-90",
		"udp sport > 65535", "tcp dport != 0-65535", "tcp flags & (syn | ack) == syn", "tcp flags & syn != 0",
		"tcp flags & 0x0 == 0x2", "tcp flags syn",
	},
	{"meta mark 1", "meta mark & 0xff != 0x10", "meta mark & 0xff == 0x100", "meta mark > 1"},
	{"limit rate 3/minute", "limit rate 7/hour burst 9 packets", "limit rate over 3/second"},
	{"ip frag-off & 0x1fff != 0", "ip frag-off & 0x1fff == 0", "ip frag-off & 0x1fff != 1", "ip frag-off 0"},
	{"ip ttl 1", "ct state new", "iif lo", "meta length 20", "icmp type 8"},
}

var nftActions = []string{
	"counter drop", "counter accept", "counter", "drop", "counter log group 3", "counter jump OTHER",
	"counter goto OTHER", "counter log prefix \"x\"", "counter reject",
}

func randomNFTRule(random *rand.Rand) string {
	var words []string
	for _, i := range random.Perm(len(nftConditions))[:random.IntN(4)] {
		group := nftConditions[i]
		words = append(words, group[random.IntN(len(group))])
	}
	return strings.Join(append(words, nftActions[random.IntN(len(nftActions))]), " ")
}

// What iptables-nft prints of a rule that is like its own is that rule: loaded again, it is the same to the kernel.
func TestPrintedAsMade(t *testing.T) {
	host.Netns(t)
	host.Feed(t, "add table ip filter\nadd chain ip filter OTHER\n", "nft", "-f", "-")
	random := rand.New(rand.NewPCG(1, 0))
	made := map[string]string{}
	for i := range 200 {
		chain := fmt.Sprintf("R%d", i)
		rule := randomNFTRule(random)
		lines := "add chain ip filter " + chain + "; add rule ip filter " + chain + " " + rule
		if exec.Command("nft", lines).Run() == nil { // nft finds contradictions, such as tcp after udp
			made[chain] = rule
		}
	}
	tables, err := rulesInKernel(detect.IPv4, false)
	host.Check(t, err)
	for chain := range tables["filter"].native { // of which iptables-nft may print nothing at all
		host.Run(t, "nft", "flush chain ip filter "+chain)
		delete(made, chain)
	}
	before := meanings(t)
	printed := host.Run(t, "iptables-nft-save", "-t", "filter")
	host.Run(t, "nft", "flush table ip filter")
	host.Feed(t, printed, "iptables-nft-restore")
	after := meanings(t)
	for chain, rule := range made {
		if before[chain] != after[chain] {
			t.Errorf("%s: made\n%s\nprinted\n%s", rule, before[chain], after[chain])
		}
	}
	t.Logf("%d rules are like those of iptables", len(made))
	if len(made) < 30 {
		t.Errorf("%d rules are like those of iptables", len(made))
	}
}

// meanings are what the rules in the chains of table filter mean, with one rule in each chain.
func meanings(t *testing.T) map[string]string {
	t.Helper()
	fd, err := netlink.Open()
	host.Check(t, err)
	defer unix.Close(fd)
	const kind = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
	host.Check(t, netlink.Send(fd, netlink.Request(kind, unix.NLM_F_DUMP, 1, unix.NFPROTO_IPV4, nil)))
	all := map[string]string{}
	buf := make([]byte, 64<<10)
	for {
		datagram, err := netlink.Receive(fd, buf)
		host.Check(t, err)
		for len(datagram) > 0 {
			var m netlink.Message
			m, datagram, err = netlink.Next(datagram)
			host.Check(t, err)
			if m.Kind == unix.NLMSG_DONE {
				return all
			}
			all[unix.ByteSliceToString(m.Attributes().Find(unix.NFTA_RULE_CHAIN))] = meaning(m)
		}
	}
}

// meaning has a line for each expression of a rule but counters, those between two limits in alphabetical order. The
// same condition can be expressed in several ways.
func meaning(rule netlink.Message) string {
	e := expressions{}
	var lines, unordered []string
	var mask []byte
	for list := rule.Attributes().Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var element netlink.Attributes
		element, list = list.Next()
		name := unix.ByteSliceToString(element.Find(unix.NFTA_EXPR_NAME))
		data := element.Find(unix.NFTA_EXPR_DATA)
		switch name {
		case "counter":
		case "payload", "meta":
			e.load(name, data)
			mask = nil
		case "bitwise":
			mask = data.Find(unix.NFTA_BITWISE_MASK).Find(unix.NFTA_DATA_VALUE)
		case "cmp":
			source := e.pending
			value := data.Find(unix.NFTA_CMP_DATA).Find(unix.NFTA_DATA_VALUE)
			e.compare(name, data) // which notes the protocol
			unordered = append(unordered, condition(source, data.Number(unix.NFTA_CMP_OP), value, mask))
		case "limit":
			slices.Sort(unordered)
			lines = append(append(lines, unordered...), fmt.Sprintf("limit %x", []byte(data)))
			unordered = nil
		default:
			unordered = append(unordered, fmt.Sprintf("%d %s %x", e.pending, name, []byte(data)))
		}
	}
	slices.Sort(unordered)
	return strings.Join(append(lines, unordered...), "\n")
}

// condition is a comparison in one form.
func condition(of source, op uint32, value, mask []byte) string {
	switch of {
	case sourceAddress:
		if mask == nil {
			mask = bytes.Repeat([]byte{0xff}, len(value))
		}
		value = append(slices.Clone(value), make([]byte, 4-len(value))...)
		mask = append(slices.Clone(mask), make([]byte, 4-len(mask))...)
	case inputInterface:
		name, _, whole := bytes.Cut(value, []byte{0})
		value = fmt.Appendf(nil, "%s, whole: %v", name, whole)
	}
	return fmt.Sprintf("%d op %d %x/%x", of, op, value, mask)
}
