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
		says:  "An earlier call or select stored nft in the switch, /usr/sbin/iptables-current.",
		shows: "iptables-current -> xtables-nft-multi",
	},
	{
		again: true, doc: "the switch is at legacy, Docker uses nft",
		make: "iptables-nft -N DOCKER-USER\n" + storedLegacy, want: "wrong-backend",
		says: "iptables here runs legacy, but the host uses nft",
	},
	{
		doc:  "an agent in a Pod's network, and nft is stored for the node's",
		make: storedNFT + "ip netns add pod; ip netns exec pod iptables-legacy" + hint,
		as:   []string{"ip", "netns", "exec", "pod"}, want: "wrong-backend",
		says: "symbolic links straight to iptables-wrapper",
	},
	{
		doc: "an entry point sets the alternatives",
		make: nftHost + "ln -sf /etc/alternatives/iptables /usr/sbin/iptables; ln -sf /usr/sbin/iptables-legacy " +
			"/etc/alternatives/iptables",
		want: "wrong-backend", says: "such as an entry point that sets alternatives",
		shows: "/etc/alternatives/iptables -> /usr/sbin/iptables-legacy",
	},
	{
		doc: "alternatives as Debian sets them, and nobody has installed the wrapper",
		make: legacyHst + "ln -sf /usr/sbin/iptables-nft /etc/alternatives/iptables; for n in iptables ip6tables; do " +
			"for c in '' -save -restore; do ln -sf /etc/alternatives/iptables /usr/sbin/$n$c; done; done",
		want: "wrong-backend", says: "leads to /usr/sbin/xtables-nft-multi.\n",
		shows: "/etc/alternatives/iptables -> /usr/sbin/iptables-nft",
	},
	{
		doc:  "the variable is wrong",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, want: "wrong-backend",
		says: "Remove IPTABLES_WRAPPER_BACKEND, or set it to legacy", shows: "nft\n",
	},
	{
		doc:  "the variable is no backend",
		make: nftHost, env: []string{"IPTABLES_WRAPPER_BACKEND=nf_tables"}, want: "wrong-backend",
		says: `IPTABLES_WRAPPER_BACKEND is not one of auto, nft, legacy: "nf_tables"`, shows: "nf_tables",
	},
	{
		again: true, doc: "iptables was never wrapped",
		make: legacyHst + "for n in iptables ip6tables; do for c in '' -save -restore; do " +
			direct + "/usr/sbin/$n$c; done; done",
		want: "wrong-backend", says: "iptables here is not wrapped",
	},
	{
		again: true, doc: "another iptables is first in PATH",
		make: legacyHst + direct + "/usr/local/sbin/iptables\n", want: "wrong-backend",
		says: "iptables here is not wrapped: /usr/local/sbin/iptables",
	},
	{
		again: true, doc: "ip6tables differs",
		make: legacyHst + direct + "/usr/sbin/ip6tables", want: "wrong-backend", says: "ip6tables",
	},
	{
		doc:  "another ip6tables is first in PATH",
		make: legacyHst + direct + "/usr/local/sbin/ip6tables", want: "wrong-backend",
		says: "iptables-wrapper install --dir /usr/local/sbin",
	},
	{
		again: true, doc: "ip6tables differs, and nobody knows the host",
		make: storedLegacy + direct + "/usr/sbin/ip6tables", want: "wrong-backend",
		says: "These run nft: /usr/sbin/ip6tables. But iptables here runs legacy.",
	},
	{
		again: true, doc: "a script runs the other backend",
		make: legacyHst + "rm /usr/sbin/iptables; printf '#!/bin/sh\\nexec iptables-nft \"$@\"\\n' " +
			">/usr/sbin/iptables; chmod 755 /usr/sbin/iptables",
		want: "wrong-backend", says: "iptables here is not wrapped",
	},

	{
		again: true, doc: "not wrapped, and right",
		make: nftHost + direct + "/usr/sbin/iptables", want: "not-wrapped",
	},
	{
		doc:  "iptables-restore is not wrapped",
		make: nftHost + direct + "/usr/sbin/iptables-restore", want: "not-wrapped",
		says: "These bypass the wrapper: /usr/sbin/iptables-restore.",
	},
	{
		again: true, doc: "a copy of the program",
		make: nftHost + "rm /usr/sbin/iptables; cp /usr/sbin/xtables-nft-multi /usr/sbin/iptables",
		want: "not-wrapped", says: "What runs instead is nft: right on this host",
	},
	{
		doc: "a script runs iptables-nft",
		make: nftHost + "rm /usr/sbin/iptables; printf '#!/bin/sh\\nexec iptables-nft \"$@\"\\n' " +
			">/usr/sbin/iptables; chmod 755 /usr/sbin/iptables",
		want: "not-wrapped", says: "What runs instead is nft: right on this host",
	},
	{
		doc: "a script that enters the host",
		make: nftHost + "rm /usr/sbin/iptables; printf '#!/bin/sh\\necho iptables v1.6.1\\n' >/usr/sbin/iptables; chmod " +
			"755 /usr/sbin/iptables",
		want: "not-wrapped", says: "WARNING  not-wrapped: These bypass the wrapper: /usr/sbin/iptables. Doctor could " +
			"not find out which backend runs instead.",
	},
	{
		doc:  "another program under the name of iptables",
		make: nftHost + "rm /usr/sbin/iptables; cp /bin/ls /usr/sbin/iptables", want: "not-wrapped",
		says: `PROBLEM  not-wrapped: These bypass the wrapper: /usr/sbin/iptables. /usr/sbin/iptables is not iptables: ` +
			`"iptables --version" printed "ls (GNU coreutils)`,
		shows: "ls (GNU coreutils)",
	},
	{
		doc:  "a directory with the name of iptables in another standard directory",
		make: nftHost + "mkdir /usr/local/sbin/iptables",
	},
	{
		doc:  "not wrapped, and nobody knows the host",
		make: "for n in iptables ip6tables; do for c in '' -save -restore; do " + direct + "/usr/sbin/$n$c; done; done",
		want: "not-wrapped",
		says: "/usr/sbin/ip6tables-restore. What runs instead is nft, whatever the host uses.",
	},

	{doc: "a Pod's own network", make: pod, want: "uncertain", says: "hostNetwork: true"},
	{
		doc:  "a Pod's network, by CNI",
		make: pod + "ip netns add node; ip link add eth0 type veth peer name veth1; ip link set veth1 netns node",
		want: "uncertain",
	},
	{
		again: true, doc: "a Pod's network, and its first rule",
		make: pod + "iptables -t nat -N MINE", want: "uncertain",
	},
	{
		again: true, doc: "a Pod's network, in an image with nft alone",
		make: pod + "rm /usr/sbin/*legacy*", want: "uncertain",
	},
	{
		doc:  "a Pod's network, and somebody has chosen",
		make: pod, env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"},
	},
	{doc: "a node in a container, as kind makes it", make: pod + nftHost},

	{doc: "nothing on the host: nft, and legacy has nothing that contradicts", make: ":"},
	{
		doc:  "the families differ",
		make: legacyHst + "ip6tables-nft" + hint, want: "uncertain",
		says: "nft has KUBE-IPTABLES-HINT (kubelet, IPv6); legacy has KUBE-IPTABLES-HINT (kubelet, IPv4).",
	},
	{
		again: true, doc: "the families differ, and the variable may be wrong",
		make: legacyHst + "ip6tables-nft" + hint, env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, want: "uncertain",
	},
	{doc: "kubelet's hint in both", make: nftHost + legacyHst, want: "uncertain",
		says: "both backends have chains that only programs of the host make. nft has"},
	{
		doc:  "rules in both, of nobody known",
		make: "iptables-nft -A INPUT -s 192.0.2.1; iptables-legacy -A INPUT -s 192.0.2.2",
		want: "both-backends uncertain",
	},
	{
		again: true, doc: "rules in nft, of nobody known",
		make: "iptables-nft -A INPUT -s 192.0.2.1 -j DROP",
	},
	{
		doc: "PATH leads through a link to a directory that others can write",
		make: nftHost + "mkdir /run/open; ln -s /run/open /run/link; for n in '' -save -restore; do ln -s " +
			"/usr/sbin/iptables$n /run/open; ln -s /usr/sbin/ip6tables$n /run/open; done\nrm /run/open/iptables; " +
			"printf '#!/bin/sh\\ntouch /run/started\\n' >/run/open/iptables; chmod 755 /run/open/iptables; chmod 777 " +
			"/run/open",
		env: []string{"PATH=/run/link:/usr/sbin:/usr/bin:/bin"}, want: "uncertain",
		says: `"/run/open" can be written by users other than root`, shows: "/run/open\n",
	},
	{
		again: true, doc: "a directory that others can write",
		make: nftHost + "chmod 777 /usr/local/sbin; ln -s /usr/sbin/iptables /usr/local/sbin/iptables\nfor n in " +
			"iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do ln -s /usr/sbin/$n " +
			"/usr/local/sbin; done",
		want: "uncertain", says: "can be written by users other than root",
	},
	{
		again: true, doc: "another user's program",
		make: nftHost + "chown 65534 /usr/sbin/xtables-nft-multi", want: "uncertain", says: "belongs to user 65534",
	},
	{
		doc: "another user's script",
		make: nftHost + "printf '#!/bin/sh\\ntouch /run/started\\n' >/usr/local/sbin/iptables\nchown 65534 " +
			"/usr/local/sbin/iptables\n" + first,
		want: "uncertain", says: "Doctor did not start iptables", shows: "/usr/local/sbin/iptables\n",
	},
}

// noRecord leaves no place for a record: a /dev that is not the container's own, and a read-only root.
const noRecord = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mount --bind /usr/sbin /usr/sbin; mount -o " +
	"remount,ro,bind /usr/sbin\n"
