// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"strings"
)

// hosts are those on which a container can be.
var hosts = []choice{
	{"kubelet uses nft", host_("iptables-nft" + hint), false, "nft"},
	{"kubelet uses legacy", host_("iptables-legacy" + hint), false, "legacy"},
	{"kubelet uses legacy, IPv6 only", host_("ip6tables-legacy" + hint), false, "legacy"},
	{
		"an old kubelet uses legacy",
		host_("for t in mangle nat filter; do iptables-legacy -t $t -N KUBE-KUBELET-CANARY; done"),
		false,
		"legacy",
	},
	{
		"Docker uses nft",
		host_("iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER; " +
			"iptables-nft -A DOCKER-USER -j RETURN"),
		false,
		"nft",
	},
	{
		"Docker uses legacy",
		host_("iptables-legacy -N DOCKER-USER; iptables-legacy -A FORWARD -j DOCKER-USER; " +
			"iptables-legacy -A DOCKER-USER -j RETURN"),
		false,
		"legacy",
	},
	{"nothing", ":", true, "unknown"},
	{
		"kubelet changed from legacy to nft",
		host_("iptables-legacy" + hint + "; ip6tables-legacy" + hint + "; iptables-nft" + hint),
		true,
		"nft",
	},
	{
		"kubelet uses legacy, something uses nft",
		host_("iptables-legacy" + hint + "; iptables-nft -A INPUT -s 192.0.2.9 -j ACCEPT"),
		true,
		"legacy",
	},
	{
		"kubelet uses nft, and a program changed sides",
		host_("iptables-nft" + hint + "; for b in nft legacy; do iptables-$b -t nat -N CNI-A; iptables-$b -t " +
			"nat -A POSTROUTING -j CNI-A; done"),
		true,
		"nft",
	},
	{
		"native rules",
		host_("nft add table ip filter; nft add chain ip filter mine '{ type filter hook input priority 0; " +
			"}'; nft add rule ip filter mine accept"),
		true,
		"unknown",
	},
	{
		"a policy of legacy drops, kubelet uses nft",
		host_("iptables-nft" + hint + "; iptables-legacy -P FORWARD DROP"),
		true,
		"nft",
	},
	{
		"Docker changed from legacy to nft",
		docker("legacy") + "\n" + docker("nft") + "\n" + host_("iptables-nft"+hint),
		true,
		"nft",
	},
	{
		"Docker changed from nft to legacy",
		docker("nft") + "\n" + docker("legacy") + "\n" + host_("iptables-legacy"+hint),
		true,
		"legacy",
	},
	{
		"a dormant table",
		host_("iptables-nft" + hint + "; nft add table ip filter '{ flags dormant; }'"),
		true,
		"unknown",
	},
	{
		"Docker uses nft, ufw legacy",
		host_("iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER; " +
			"iptables-legacy -N ufw-user-input; " +
			"iptables-legacy -A INPUT -j ufw-user-input"),
		true,
		"unknown",
	},
	{"one backend for each family", host_("iptables-legacy" + hint + "; ip6tables-nft" + hint), true, "unknown"},
	{
		"the lock is held",
		host_("iptables-legacy"+hint) + "\nflock -o $D/xtables.lock sleep 1000 >/dev/null & HOLDER=$!",
		true,
		"legacy",
	},
}

// docker has Docker publish a port with one backend.
func docker(backend string) string {
	return "test -n \"$client\" || network\n" + host_(strings.ReplaceAll(publish, "$1", "iptables-"+backend))
}

const publish = `
$1 -t nat -N DOCKER
$1 -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
$1 -t nat -A DOCKER -p tcp --dport 80 -j DNAT --to-destination 10.2.0.2:8080
$1 -N DOCKER
$1 -A FORWARD -o toserver -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
$1 -A FORWARD -o toserver -j DOCKER
$1 -A FORWARD -i toserver -j ACCEPT
$1 -A DOCKER -d 10.2.0.2 -p tcp --dport 8080 -j ACCEPT
$1 -P FORWARD DROP`
