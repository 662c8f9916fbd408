// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package containers

import "strings"

// hosts are those on which a container can be.
var hosts = []choice{
	healthy("kubelet uses nft", host_("iptables-nft"+hint)).on("nft"),
	healthy("kubelet uses legacy", host_("iptables-legacy"+hint)).on("legacy"),
	healthy("kubelet uses legacy, IPv6 only", host_("ip6tables-legacy"+hint)).on("legacy"),
	healthy("an old kubelet uses legacy",
		host_("for t in mangle nat filter; do iptables-legacy -t $t -N KUBE-KUBELET-CANARY; done")).on("legacy"),
	healthy("Docker uses nft",
		host_("iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER; "+
			"iptables-nft -A DOCKER-USER -j RETURN")).on("nft"),
	healthy("Docker uses legacy",
		host_("iptables-legacy -N DOCKER-USER; iptables-legacy -A FORWARD -j DOCKER-USER; "+
			"iptables-legacy -A DOCKER-USER -j RETURN")).on("legacy"),
	faulty("nothing", ":").on("unknown"),
	faulty("kubelet changed from legacy to nft",
		host_("iptables-legacy"+hint+"; ip6tables-legacy"+hint+"; iptables-nft"+hint)).on("nft"),
	faulty("kubelet uses legacy, something uses nft",
		host_("iptables-legacy"+hint+"; iptables-nft -A INPUT -s 192.0.2.9 -j ACCEPT")).on("legacy"),
	faulty("kubelet uses nft, and a program changed sides",
		host_("iptables-nft"+hint+"; for b in nft legacy; do iptables-$b -t nat -N CNI-A; "+
			"iptables-$b -t nat -A POSTROUTING -j CNI-A; done")).on("nft"),
	faulty("native rules",
		host_("nft add table ip filter; nft add chain ip filter mine '{ type filter hook input priority 0; "+
			"}'; nft add rule ip filter mine accept")).on("unknown"),
	faulty("a policy of legacy drops, kubelet uses nft",
		host_("iptables-nft"+hint+"; iptables-legacy -P FORWARD DROP")).on("nft"),
	faulty("Docker changed from legacy to nft",
		docker("legacy")+"\n"+docker("nft")+"\n"+host_("iptables-nft"+hint)).on("nft"),
	faulty("Docker changed from nft to legacy",
		docker("nft")+"\n"+docker("legacy")+"\n"+host_("iptables-legacy"+hint)).on("legacy"),
	faulty("a dormant table",
		host_("iptables-nft"+hint+"; nft add table ip filter '{ flags dormant; }'")).on("unknown"),
	faulty("Docker uses nft, ufw legacy",
		host_("iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER; "+
			"iptables-legacy -N ufw-user-input; iptables-legacy -A INPUT -j ufw-user-input")).on("unknown"),
	faulty("one backend for each family", host_("iptables-legacy"+hint+"; ip6tables-nft"+hint)).on("unknown"),
	faulty("the lock is held",
		host_("iptables-legacy"+hint)+"\nflock -o $D/xtables.lock sleep 1000 >/dev/null & HOLDER=$!").on("legacy"),
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
