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
	{doc: "kubelet uses legacy for IPv6 only", make: "ip6tables-legacy" + hint},
	{
		doc:  "an old kubelet uses legacy",
		make: "for t in mangle nat filter; do iptables-legacy -t $t -N KUBE-KUBELET-CANARY; done",
	},
	{doc: "Docker uses nft", make: "iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER"},
	{doc: "ufw uses legacy", make: "iptables-legacy -N ufw-user-input; iptables-legacy -A INPUT -j ufw-user-input"},
	{doc: "rules in nft alone", make: "iptables-nft -A INPUT -s 192.0.2.1 -j DROP"},
	{doc: "firewalld uses nftables' own tables", make: "nft add table inet firewalld"},
	{doc: "a call has stored nft", make: nftHost + "iptables -N MINE; iptables-nft -S MINE"},
	{doc: "a call has stored legacy", make: legacyHst + "iptables -A INPUT -j ACCEPT; iptables-legacy -C INPUT -j " +
		"ACCEPT"},
	{
		doc:  "legacy has empty tables",
		make: nftHost + "for t in filter nat mangle raw; do iptables-legacy -t $t -S >/dev/null; done",
	},
	{
		doc:  "legacy has what kubelet left behind",
		make: nftHost + "for t in mangle nat filter; do iptables-legacy -t $t -N KUBE-KUBELET-CANARY; done",
	},
	{doc: "the variable agrees", make: legacyHst, env: []string{"IPTABLES_WRAPPER_MODE=legacy"}},
	{doc: "the variable leaves it to the wrapper", make: legacyHst, env: []string{"IPTABLES_WRAPPER_MODE=auto"}},
	{
		doc:  "a chain of nft in a table of its own",
		make: nftHost + "nft add table ip mine; nft add chain ip mine c '{ type filter hook input priority 0; }'",
	},
	{
		doc: "a cluster's rules",
		make: nftHost + `{ echo "*nat"; echo ":KUBE-SERVICES - [0:0]"
			for i in $(seq 300); do echo ":KUBE-SVC-$i - [0:0]"; echo "-A KUBE-SERVICES -d 10.0.0.$((i % 250)) -j KUBE-SVC-$i"; done
			echo "-A PREROUTING -j KUBE-SERVICES"; echo COMMIT; } | iptables-nft-restore`,
	},
	{doc: "iptables has a policy", make: nftHost + "iptables-nft -P FORWARD DROP"},
	{doc: "/usr/local/sbin leads to the wrapper", make: nftHost + "ln -s /usr/sbin/iptables " +
		"/usr/local/sbin/iptables\n" +
		"for n in iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do ln -s /usr/sbin/$n " +
		"/usr/local/sbin; done"},
	{
		doc:  "the image has the program of its backend alone",
		make: nftHost + "rm /usr/sbin/*legacy*",
	},
	{
		doc: "a script starts the wrapper",
		make: nftHost + "printf '#!/bin/sh\\nexec /usr/sbin/iptables \"$@\"\\n' >/usr/local/sbin/iptables\nchmod 755 " +
			"/usr/local/sbin/iptables",
	},
}
