// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

const (
	hint      = " -t mangle -N KUBE-IPTABLES-HINT\n"
	nftHost   = "iptables-nft" + hint
	legacyHst = "iptables-legacy" + hint
)

// In silentSituations, nothing is wrong.
var silentSituations = []situation{
	{doc: "kubelet uses nft", make: nftHost},
	{doc: "kubelet uses legacy", make: legacyHst},
	{
		again: true, doc: "kubelet uses legacy for IPv6 only",
		make: "ip6tables-legacy" + hint,
	},
	{
		again: true, doc: "an old kubelet uses legacy",
		make: "for t in mangle nat filter; do iptables-legacy -t $t -N KUBE-KUBELET-CANARY; done",
	},
	{
		again: true, doc: "Docker uses nft",
		make: "iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER",
	},
	{
		again: true, doc: "ufw uses legacy",
		make: "iptables-legacy -N ufw-user-input; iptables-legacy -A INPUT -j ufw-user-input",
	},
	{
		doc: "firewalld uses native tables, and Docker iptables-nft",
		make: "iptables-nft -N DOCKER-USER; nft add table inet firewalld; nft add chain inet firewalld c; nft add " +
			"rule inet firewalld c drop; nft add table ip mine",
		says: "native tables:  inet firewalld: 1 rule; ip mine: 0 rules (packets pass these, too",
	},
	{
		doc: "a guess, and the host's rules are in legacy now: calls follow them",
		make: "iptables -A INPUT -j ACCEPT; nft flush ruleset; iptables-legacy -A FORWARD -s 192.0.2.3 -j ACCEPT; " +
			"iptables-legacy -N DOCKER-USER",
	},
	{doc: "legacy, and nobody has made its lock", make: legacyHst + "iptables-legacy -A INPUT -j ACCEPT; rm " +
		"/run/xtables.lock"},
	{
		again: true, doc: "the lock's file system has no number of inodes",
		make: legacyHst + "mount -t ramfs none /run",
	},
	{
		again: true, doc: "a node that runs a container with CNI, and nobody knows the host",
		make: "ip netns add pod; ip link add veth0 type veth peer name eth0 netns pod",
	},
	{
		again: true, doc: "a node in a container, with an old kubelet",
		make: pod + "for t in mangle nat filter; do iptables-nft -t $t -N KUBE-KUBELET-CANARY; done",
		says: "), shared with process 1\nkernel:",
	},
	{
		again: true, doc: "the wrapper is in two directories, and the other switch is stored",
		make: nftHost + "ln -s /usr/sbin/xtables-nft-multi /usr/local/sbin/iptables-current; ln -s iptables-current " +
			"/usr/local/sbin/iptables",
		env: []string{"PATH=/usr/sbin:/usr/bin:/bin"},
	},
	{
		again: true, doc: "ip6tables is in another directory, and ip6tables-save is missing",
		make: nftHost + "ln -s /usr/sbin/ip6tables /usr/local/sbin/ip6tables; rm /usr/sbin/ip6tables-save",
		says: "missing:        /usr/sbin/ip6tables-save\n",
	},
	{doc: "nothing can be recorded", make: "iptables-nft -N DOCKER-USER\n" + noRecord},
	{
		doc:  "ip6tables is missing, and nothing calls it",
		make: nftHost + "rm /usr/sbin/ip6tables", says: "missing:        /usr/sbin/ip6tables\n",
	},
	{
		again: true, doc: "a rule of nft that iptables lists as it is",
		make: nftHost + "iptables-nft -N MINE; nft add rule ip filter MINE ip saddr 192.0.2.1 tcp dport 10-20 " +
			"counter drop",
	},
	{
		again: true, doc: "rules of iptables that are native expressions",
		make: nftHost + `printf '%s\n' '*filter' '-A INPUT ! -s 192.0.2.0/27 -i eth+ -p tcp --sport 1: ! --dport 22 ` +
			`--syn' \
			'-A INPUT -m mark --mark 1/3 -m pkttype --pkt-type broadcast -m limit --limit 7/min -j NFLOG' \
			'-A INPUT -f -m ttl --ttl-gt 3 -m set ! --match-set s src -m comment --comment "a -j DROP"' COMMIT '*raw' \
			'-A PREROUTING -p udp --dport 1:9 -j TRACE' COMMIT >rules; ipset create s hash:ip
			iptables-nft-restore rules`,
	},
	{doc: "a call has stored nft", make: nftHost + "iptables -N MINE; iptables-nft -S MINE"},
	{again: true, doc: "a call has stored legacy", make: legacyHst + "iptables -A INPUT -j ACCEPT; iptables-legacy " +
		"-C INPUT -j ACCEPT"},
	{
		doc:  "legacy has empty tables",
		make: nftHost + "for t in filter nat mangle raw; do iptables-legacy -t $t -S >/dev/null; done",
	},
	{
		doc:  "legacy has what kubelet left behind",
		make: nftHost + "for t in mangle nat filter; do iptables-legacy -t $t -N KUBE-KUBELET-CANARY; done",
	},
	{doc: "the variable agrees", make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}},
	{
		again: true, doc: "the variable leaves it to the wrapper",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=auto"},
	},
	{
		again: true, doc: "a chain of nft in a table of its own",
		make: nftHost + "nft add table ip mine; nft add chain ip mine c '{ type filter hook input priority 0; }'",
	},
	{
		again: true, doc: "a cluster's rules",
		make: nftHost + `{ echo "*nat"; echo ":KUBE-SERVICES - [0:0]"
			for i in $(seq 300); do
				echo ":KUBE-SVC-$i - [0:0]"; echo "-A KUBE-SERVICES -d 10.0.0.$((i % 250)) -j KUBE-SVC-$i"
			done
			echo "-A PREROUTING -j KUBE-SERVICES"; echo COMMIT; } | iptables-nft-restore`,
	},
	{doc: "iptables has a policy", make: nftHost + "iptables-nft -P FORWARD DROP"},
	{again: true, doc: "/usr/local/sbin leads to the wrapper", make: nftHost + "ln -s /usr/sbin/iptables " +
		"/usr/local/sbin/iptables\nfor n in iptables-save iptables-restore ip6tables ip6tables-save " +
		"ip6tables-restore; do ln -s /usr/sbin/$n /usr/local/sbin; done"},
	{
		doc:  "the image has the program of its backend alone",
		make: nftHost + "rm /usr/sbin/*legacy*",
	},
	{
		doc: "a script starts the wrapper",
		make: legacyHst + "printf '#!/bin/sh\\nexec /usr/sbin/iptables \"$@\"\\n' >/usr/local/sbin/iptables\nchmod " +
			"755 /usr/local/sbin/iptables",
	},
}
