// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

// bothSituations are about rules in the backend that the host does not use.
var bothSituations = []situation{
	{
		doc: "kube-proxy's rules are left in legacy",
		make: nftHost + `{ echo "*nat"; echo ":KUBE-SERVICES - [0:0]"; echo ":KUBE-SVC-A - [0:0]"; echo ":KUBE-SEP-A ` +
			`- [0:0]"
			echo "-A PREROUTING -m comment --comment \"kubernetes service portals -j X\" -j KUBE-SERVICES"
			for i in $(seq 40); do echo "-A KUBE-SERVICES -d 10.0.0.$i -p tcp --dport 80 -j KUBE-SVC-A"; done
			echo "-A KUBE-SVC-A -j KUBE-SEP-A"; echo "-A KUBE-SEP-A -p tcp -j DNAT --to-destination 10.2.0.2:80"
			echo COMMIT; } | iptables-legacy-restore`,
		want: "both-backends",
		says: "Connections to Services may go to Pods that are gone. The other backend, legacy, has 43 rules of " +
			"kube-proxy. Packets pass both backends, and iptables here does not list this one.",
	},
	{
		doc: "Docker's rules are left in nft",
		make: legacyHst + `iptables-nft -t nat -N DOCKER; iptables-nft -t nat -A PREROUTING -m addrtype --dst-type ` +
			`LOCAL -j DOCKER
			iptables-nft -t nat -A DOCKER -p tcp --dport 80 -j DNAT --to-destination 10.2.0.2:8080
			iptables-nft -N DOCKER; iptables-nft -A FORWARD -j DOCKER; iptables-nft -P FORWARD DROP`,
		want: "both-backends",
		says: "Connections may be redirected: nft has 1 rule with DNAT, REDIRECT or TPROXY. Packets that legacy " +
			"accepts may be dropped: nft has the policy DROP for FORWARD (ip filter). The other backend, nft, has 3 " +
			"rules of Docker.",
	},
	{
		doc:  "a policy of legacy drops",
		make: nftHost + "iptables-legacy -P FORWARD DROP", want: "both-backends",
		says: "legacy has the policy DROP for FORWARD (ip filter). The other backend, legacy, has no rules.",
	},
	{
		doc: "rules in a dormant table act on nothing",
		make: legacyHst + "iptables-nft -A INPUT -j DROP; iptables-nft -P INPUT DROP; " +
			"nft 'add table ip filter { flags dormant; }'",
	},
	{
		again: true, doc: "more rules in nft than doctor reads",
		make: legacyHst + "{ echo '*filter'; seq -f '-A INPUT -s 192.0.2.1 -m comment --comment %g -j ACCEPT' 33000; " +
			"echo COMMIT; } | iptables-nft-restore",
		want: "both-backends", says: "nft, has at least 32768 rules of unknown programs. Packets pass both backends",
	},
	{
		again: true, doc: "a policy of legacy drops IPv6",
		make: nftHost + "ip6tables-legacy -P INPUT DROP", want: "both-backends",
		says: "look: ip6tables-legacy-save -c",
	},
	{
		doc: "Calico has left a DROP in legacy",
		make: nftHost + "iptables-legacy -N cali-FORWARD; iptables-legacy -A FORWARD -j cali-FORWARD; " +
			"iptables-legacy -A cali-FORWARD -m conntrack --ctstate INVALID -j DROP",
		want: "both-backends",
		says: "PROBLEM  both-backends: Packets that nft accepts may be dropped: legacy has 1 " +
			"rule with DROP or REJECT. The other backend, legacy, has 2 rules of Calico.",
		shows: "-A cali-FORWARD -m conntrack --ctstate INVALID -j DROP",
	},
	{
		again: true, doc: "RHEL's last rule, and a reboot",
		make: nftHost + "iptables-legacy -A FORWARD -j REJECT", want: "both-backends",
		says: "drain the node and reboot it",
	},
	{
		again: true, doc: "two fail2bans",
		make: nftHost + "for b in nft legacy; do iptables-$b -N f2b-sshd; iptables-$b -A f2b-sshd -j RETURN; " +
			"iptables-$b -A INPUT -p tcp --dport 22 -j f2b-sshd; done",
		want: "both-backends", says: "legacy, has 2 rules of fail2ban",
	},
	{
		again: true, doc: "Calico, Tailscale and somebody in the other backend",
		make: legacyHst + "iptables-nft -N cali-INPUT; iptables-nft -A INPUT -j cali-INPUT; iptables-nft -N " +
			"ts-input; iptables-nft -A ts-input -s 100.64.0.0/10 -j DROP; iptables-nft -A INPUT -j ACCEPT",
		want: "both-backends", says: "3 rules of Calico, Tailscale, unknown programs",
	},
	{
		doc: "DNAT that no packet reaches",
		make: nftHost + "iptables-legacy -t nat -N UNUSED; iptables-legacy -t nat -A UNUSED -p tcp -j DNAT --to " +
			"10.0.0.1:80",
		want: "both-backends", says: "WARNING  both-backends",
	},
	{
		doc: "kubelet's firewall is left in legacy",
		make: nftHost + "iptables-legacy -N KUBE-FIREWALL; iptables-legacy -A KUBE-FIREWALL -m mark --mark " +
			"0x8000/0x8000 -j DROP; iptables-legacy -A OUTPUT -j KUBE-FIREWALL",
		want: "both-backends", says: "WARNING  both-backends: The other backend, legacy, has 2 rules of kubelet",
	},
	{
		doc:  "an image without the other backend",
		make: nftHost + "iptables-legacy -A INPUT -s 192.0.2.1 -j DROP; rm /usr/sbin/*legacy*", want: "both-backends",
		says: "PROBLEM  both-backends: Packets that nft accepts may be dropped: legacy has 1 rule with DROP or " +
			"REJECT.",
		shows: "legacy   yes     1",
	},
	{
		again: true, doc: "nft directly, on a host with legacy",
		make: legacyHst + "nft add table ip filter; nft add chain ip filter mine '{ type filter hook input priority " +
			"0; }'; nft add rule ip filter mine ip ttl 1 drop",
		want: "both-backends",
		says: "Packets that legacy accepts may be dropped: nft has 1 rule with DROP or REJECT.", shows: "ip ttl 1",
	},
	{
		again: true, doc: "3,000 chains",
		make: nftHost + `{ echo "*filter"; for i in $(seq 3000); do echo ":ROUTE-$i - [0:0]"; echo "-A ROUTE-$i -j ` +
			`ACCEPT"; done
			echo COMMIT; } | iptables-legacy-restore`,
		want: "both-backends", says: "3000 rules of unknown programs",
	},
	{
		doc:  "the stored backend is wrong, and has rules",
		make: legacyHst + storedNFT + "iptables-nft -A INPUT -j ACCEPT", want: "wrong-backend both-backends",
		says: "iptables here lists only this one, because it runs the wrong backend",
	},
	{
		again: true, doc: "the node has changed to nft, and Docker is left in legacy",
		make: nftHost + "iptables-legacy -N DOCKER-USER; iptables-legacy -A FORWARD -j DOCKER-USER; iptables-legacy " +
			"-A DOCKER-USER -j RETURN",
		want: "both-backends", says: "2 rules of Docker",
	},
}
