// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

const (
	// direct has one of the names lead to a program of nft.
	direct = "ln -sf /usr/sbin/xtables-nft-multi "
	// stored points the switch at a program.
	storedNFT    = "ln -sf xtables-nft-multi /usr/sbin/iptables-current\n"
	storedLegacy = "ln -sf xtables-legacy-multi /usr/sbin/iptables-current\n"
	// first makes a script in the first directory of PATH executable.
	first = "chmod 755 /usr/local/sbin/iptables\n"
	// pod leaves nothing but lo.
	pod = "ip link delete node0\n"
)

// In backendSituations, iptables may run another backend than the host.
var backendSituations = []situation{
	{
		doc:  "the switch is at nft, kubelet uses legacy",
		make: legacyHst + storedNFT, want: "wrong-backend",
		says: "An earlier call or select stored nft in the switch, /usr/sbin/iptables-current.",
	},
	{
		doc:  "the switch is at legacy, Docker uses nft",
		make: "iptables-nft -N DOCKER-USER\n" + storedLegacy, want: "wrong-backend",
		says: "iptables here runs legacy, and the host uses nft",
	},
	{
		doc: "a guess, and the host's rules are in legacy now",
		make: "iptables -A INPUT -j ACCEPT; nft flush ruleset; iptables-legacy -A FORWARD -s 192.0.2.3 -j ACCEPT; " +
			"iptables-legacy -N DOCKER-USER",
		want: "wrong-backend", says: "This container remembers nft from an earlier call",
	},
	{
		doc:  "the variable is wrong",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_MODE=nft"}, want: "wrong-backend",
		says: "remove IPTABLES_WRAPPER_MODE, or set it to legacy",
	},
	{
		doc:  "the variable is no backend",
		make: nftHost, env: []string{"IPTABLES_WRAPPER_MODE=nf_tables"}, want: "wrong-backend",
		says: `IPTABLES_WRAPPER_MODE is "nf_tables", which is not a backend`,
	},
	{
		doc: "iptables was never wrapped",
		make: legacyHst + "for n in iptables ip6tables; do for c in '' -save -restore; " +
			"do " + direct + "/usr/sbin/$n$c; done; done",
		want: "wrong-backend", says: "iptables here is not wrapped",
	},
	{
		doc:  "another iptables is first in PATH",
		make: legacyHst + direct + "/usr/local/sbin/iptables\n", want: "wrong-backend",
		says: "iptables here is not wrapped: /usr/local/sbin/iptables",
	},
	{
		doc:  "ip6tables differs",
		make: legacyHst + direct + "/usr/sbin/ip6tables", want: "wrong-backend", says: "ip6tables",
	},
	{
		doc:  "another ip6tables is first in PATH",
		make: legacyHst + direct + "/usr/local/sbin/ip6tables", want: "wrong-backend",
		says: "iptables-wrapper install --dir /usr/local/sbin",
	},
	{
		doc:  "ip6tables differs, and nobody knows the host",
		make: storedLegacy + direct + "/usr/sbin/ip6tables", want: "wrong-backend uncertain",
		says: "Some of the six commands run nft: /usr/sbin/ip6tables. But iptables here runs legacy.",
	},
	{
		doc: "a script runs the other backend",
		make: legacyHst + "rm /usr/sbin/iptables; printf '#!/bin/sh\\nexec iptables-nft \"$@\"\\n' >/usr/sbin/iptables; " +
			"chmod 755 /usr/sbin/iptables",
		want: "wrong-backend", says: "iptables here is not wrapped",
	},

	{doc: "not wrapped, and right", make: nftHost + direct + "/usr/sbin/iptables", want: "not-wrapped"},
	{
		doc:  "iptables-restore is not wrapped",
		make: nftHost + direct + "/usr/sbin/iptables-restore", want: "not-wrapped",
		says: "Some of the six commands do not run the wrapper: /usr/sbin/iptables-restore.",
	},
	{
		doc:  "a copy of the program",
		make: nftHost + "rm /usr/sbin/iptables; cp /usr/sbin/xtables-nft-multi /usr/sbin/iptables",
		want: "not-wrapped", says: "They run nft on every host",
	},
	{
		doc: "a script runs iptables-nft",
		make: nftHost + "rm /usr/sbin/iptables; printf '#!/bin/sh\\nexec iptables-nft \"$@\"\\n' >/usr/sbin/iptables; " +
			"chmod 755 /usr/sbin/iptables",
		want: "not-wrapped", says: "They run nft on every host",
	},
	{
		doc: "a script that enters the host",
		make: nftHost + "rm /usr/sbin/iptables; printf '#!/bin/sh\\nexec /bin/true\\n' >/usr/sbin/iptables; chmod 755 " +
			"/usr/sbin/iptables",
		want: "not-wrapped", says: "A script that enters the host",
	},
	{
		doc:  "not wrapped, and nobody knows the host",
		make: "for n in iptables ip6tables; do for c in '' -save -restore; do " + direct + "/usr/sbin/$n$c; done; done",
		want: "uncertain not-wrapped", says: "The six commands in /usr/sbin do not run the wrapper. They run nft",
	},

	{doc: "a Pod's own network", make: pod, want: "pod-network", says: "hostNetwork: true"},
	{
		doc:  "a Pod's network, by CNI",
		make: pod + "ip netns add node; ip link add eth0 type veth peer name veth1; ip link set veth1 netns node",
		want: "pod-network",
	},
	{
		doc:  "a Pod's network, and its first rule",
		make: pod + "iptables -t nat -N MINE", want: "pod-network",
	},
	{doc: "a Pod's network, and nothing can be remembered", make: pod + noMemory, want: "pod-network"},
	{doc: "a Pod's network, in an image with nft alone", make: pod + "rm /usr/sbin/*legacy*", want: "pod-network"},
	{
		doc:  "a Pod's network, and somebody has chosen",
		make: pod, env: []string{"IPTABLES_WRAPPER_MODE=legacy"},
	},
	{doc: "a node in a container, as kind makes it", make: pod + nftHost},

	{doc: "nothing on the host", make: ":", want: "uncertain", says: "set IPTABLES_WRAPPER_MODE"},
	{
		doc:  "the families differ",
		make: legacyHst + "ip6tables-nft" + hint, want: "uncertain",
		says: "chain KUBE-IPTABLES-HINT is in nft (IPv6) and in legacy (IPv4)",
	},
	{
		doc:  "the families differ, and the variable may be wrong",
		make: legacyHst + "ip6tables-nft" + hint, env: []string{"IPTABLES_WRAPPER_MODE=nft"}, want: "uncertain",
	},
	{doc: "kubelet's hint in both", make: nftHost + legacyHst, want: "uncertain", says: "is in both backends"},
	{
		doc:  "rules in both, of nobody known",
		make: "iptables-nft -A INPUT -s 192.0.2.1; iptables-legacy -A INPUT -s 192.0.2.2",
		want: "both-backends uncertain",
	},
	{
		doc:  "nothing can be remembered",
		make: "iptables-nft -N DOCKER-USER\n" + noMemory, want: "uncertain",
		says: "each call decides again",
	},
	{
		doc: "a directory that others can write",
		make: nftHost + "chmod 777 /usr/local/sbin; ln -s /usr/sbin/iptables /usr/local/sbin/iptables\nfor n in " +
			"iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do ln -s /usr/sbin/$n " +
			"/usr/local/sbin; done",
		want: "uncertain", says: "users other than root can write",
	},
	{
		doc:  "another user's program",
		make: nftHost + "chown 65534 /usr/sbin/xtables-nft-multi", want: "uncertain", says: "belongs to user 65534",
	},
	{
		doc: "another user's script",
		make: nftHost + "printf '#!/bin/sh\\ntouch /run/started\\n' >/usr/local/sbin/iptables\nchown 65534 " +
			"/usr/local/sbin/iptables\n" + first,
		want: "uncertain", says: "doctor did not start it",
	},
}

// noMemory leaves no place to remember anything: a /dev that is not the container's own, and a read-only root.
const noMemory = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mount --bind /usr/sbin /usr/sbin; mount " +
	"-o remount,ro,bind /usr/sbin\n"
