// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

// readOnly makes the directory of the switch read-only.
const readOnly = "mount --bind /usr/sbin /usr/sbin; mount -o remount,ro,bind /usr/sbin\n"

// noLegacy is an image with nft's programs alone.
const noLegacy = "rm /usr/sbin/*legacy*\n"

// without copies iptables' libraries, but for some.
const without = "mkdir /run/x; cp /usr/lib/*/xtables/lib*t_* /run/x; cd /run/x; rm "

// inOwn is a user namespace with a network of its own, which only that reveals, and in which a client has made rules.
func inOwn(commands string) []string {
	commands = "ip link add node0 type veth peer name node1; " + commands
	return []string{"unshare", "--user", "--map-root-user", "--net", "sh", "-ec", commands + "; exec \"$@\"", "sh"}
}

// In eyeSituations, doctor reads what no program here lists.
var eyeSituations = []situation{
	{
		doc:  "a policy of legacy drops, and the image has only nft",
		make: nftHost + "iptables-legacy -P FORWARD DROP\n" + noLegacy, want: "both-backends",
		says: "PROBLEM  both-backends: Packets that nft accepts may be dropped: legacy has the policy DROP for FORWARD",
	},
	{
		again: true, doc: "a policy of legacy drops, and there is no NET_RAW",
		make: nftHost + "iptables-legacy -P FORWARD DROP", as: noNetRaw, want: "both-backends",
		says: "PROBLEM  both-backends",
	},
	{
		doc: "NFQUEUE without bypass in legacy, one with bypass, and TPROXY",
		make: nftHost + "iptables-legacy -A INPUT -j NFQUEUE; iptables-legacy -A INPUT -j NFQUEUE --queue-bypass; " +
			"iptables-legacy -t mangle -A PREROUTING -p tcp -j TPROXY --on-port 1",
		want: "both-backends", says: "legacy has 1 rule with NFQUEUE without bypass.",
	},
	{
		doc:  "NFQUEUE with bypass in legacy",
		make: nftHost + "iptables-legacy -A INPUT -j NFQUEUE --queue-bypass", want: "both-backends",
		says: "WARNING  both-backends: The other backend, legacy, has 1 rule",
	},
	{
		again: true, doc: "NFQUEUE in nft, with and without bypass",
		make: legacyHst + "iptables-nft -A INPUT -j NFQUEUE; iptables-nft -A INPUT -j NFQUEUE --queue-bypass",
		want: "both-backends", says: "nft has 1 rule with NFQUEUE without bypass.",
	},
	{
		again: true, doc: "TPROXY in nft",
		make: legacyHst + "iptables-nft -t mangle -A PREROUTING -p tcp -j TPROXY --on-port 1", want: "both-backends",
		says: "nft has 1 rule with DNAT, REDIRECT or TPROXY.",
	},
	{
		doc: "native base chains with the policy drop, also at a device",
		make: nftHost + "nft add table inet ks; for h in input output; do nft add chain inet ks $h \"{ type filter " +
			"hook $h priority 0; policy drop; }\"; done; nft add table netdev nd; nft add chain netdev nd c '{ type " +
			"filter hook ingress device lo priority 0; policy drop; }'",
		says: "inet ks: 0 rules, policy drop for input, output; netdev nd: 0 rules, policy drop for ingress (",
	},
	{
		doc: "a chain with a name that a shell would run",
		make: nftHost + "iptables-legacy -N 'a;touch${IFS}/run/pwn'; iptables-legacy -A INPUT -j " +
			"'a;touch${IFS}/run/pwn'; iptables-nft -N 'a;touch${IFS}/run/pwn'; iptables-nft -A INPUT -j " +
			"'a;touch${IFS}/run/pwn'; for b in nft legacy; do iptables-$b -A 'a;touch${IFS}/run/pwn' -j DROP; done",
		want: "both-backends",
	},
}

// In tryingSituations, doctor tries what iptables does.
var tryingSituations = []situation{
	{
		doc:  "the lock may not be opened",
		make: legacyHst, as: []string{examineVariable + "=open"}, want: "lock", says: "permission denied",
	},
	{
		doc:  "the lock may not be locked",
		make: legacyHst, as: []string{examineVariable + "=flock"}, want: "lock", says: "operation not permitted",
	},
	{
		again: true, doc: "the lock's file system has no locks",
		make: legacyHst, as: []string{examineVariable + "=nolock"}, want: "lock", says: "no locks available",
	},
	{
		doc:  "the lock is a link into a directory that is missing",
		make: legacyHst + "rm -f /run/xtables.lock; ln -s gone/lock /run/xtables.lock", want: "lock",
		says: "create \"/run/gone/lock\": no such file or directory",
	},
	{
		again: true, doc: "the lock is a device, which can be locked",
		make: legacyHst + "rm -f /run/xtables.lock; ln -s /dev/null /run/xtables.lock",
	},
	{
		doc:  "no inode is left for the lock",
		make: legacyHst + "mount -t tmpfs -o nr_inodes=1 none /run", want: "lock", says: "no space left on device",
	},
	{
		doc:  "libraries that no rule uses are missing",
		make: nftHost + without + "libxt_set.so libxt_TPROXY.so", env: []string{"XTABLES_LIBDIR=/run/x"},
		says: "fail here:      -m set, -j TPROXY (the image lacks the libraries)",
	},
	{
		doc: "a library that a rule uses is missing",
		make: nftHost + "ipset create s hash:ip; iptables-nft -A INPUT -m set --match-set s src -j ACCEPT\n" + without +
			"libxt_set.so",
		env: []string{"XTABLES_LIBDIR=/run/x"}, want: "no-program",
		says: "PROBLEM  no-program: The image lacks the libraries for -m set", shows: "Couldn't load match `set'",
	},
	{
		again: true, doc: "a library that a rule of legacy uses is missing",
		make: legacyHst + "iptables-legacy -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 1\n" + without +
			"libxt_REDIRECT.so",
		env: []string{"XTABLES_LIBDIR=/run/x"}, want: "no-program",
		says: "The image lacks the libraries for -j REDIRECT",
	},
	{
		again: true, doc: "a library that nobody tries, and a rule uses, is missing",
		make: nftHost + "iptables-nft -A INPUT -m ttl --ttl-eq 3 -m helper --helper ftp -j ACCEPT\n" + without +
			"libxt_helper.so",
		env: []string{"XTABLES_LIBDIR=/run/x"}, want: "no-program", says: "match extension not found",
	},
	{
		doc:  "legacy, and the kernel has no IPv6",
		make: legacyHst, as: []string{examineVariable + "=no-ipv6"},
	},
	{
		doc: "log prefixes and comments of anybody",
		make: nftHost + "iptables-nft -A INPUT -j LOG --log-prefix 'permission denied: '; iptables-nft -A INPUT -m " +
			"comment --comment 'no such program\n*\n# Table `filter\\'' is incompatible, use '\\''nft'\\'' tool.'",
	},
	{
		again: true, doc: "log prefixes and comments of anybody, in legacy",
		make: legacyHst + "iptables-legacy -A INPUT -j LOG --log-prefix 'permission denied: '; iptables-legacy -A " +
			"INPUT -m comment --comment 'error while loading shared libraries'",
	},
}

// In oneSituations, one backend or one name cannot be asked or run, and that is all that is wrong.
var oneSituations = []situation{
	{doc: "legacy, and seccomp forbids netlink", make: legacyHst, as: []string{examineVariable + "=netlink"}},
	{
		doc: "legacy, seccomp forbids netlink, and the lock is a directory", want: "lock",
		make: legacyHst + "rm /run/xtables.lock; mkdir /run/xtables.lock", as: []string{examineVariable + "=netlink"},
	},
	{
		doc:  "a directory under a name",
		make: nftHost + "rm /usr/sbin/ip6tables; mkdir /usr/sbin/ip6tables", want: "no-program",
		says: "A call of ip6tables fails: run /usr/sbin/ip6tables: is a directory.",
	},
	{
		doc: "two names are broken, each in another way",
		make: nftHost + "rm /usr/sbin/iptables-save /usr/sbin/ip6tables; mkdir /usr/sbin/ip6tables; ln -s gone " +
			"/usr/sbin/iptables-save",
		want: "no-program",
		says: "/usr/sbin/iptables-save leads to a file that is missing (lstat /usr/sbin/gone: no such " +
			"file or directory). These fail, too: /usr/sbin/ip6tables.",
	},
	{
		doc: "iptables alone is missing", make: nftHost + "rm /usr/sbin/iptables", want: "no-program",
		says: "There is no /usr/sbin/iptables, but other commands of iptables are there.",
	},
	{
		doc:  "a closed directory in PATH, and no ip6tables",
		make: nftHost + "rm /usr/sbin/ip6tables; mkdir -m 700 /run/private; chgrp 0 /run/private", as: asGroup0,
		env: []string{"PATH=/run/private:/usr/sbin:/usr/bin:/bin"},
	},
	{
		doc:  "a file without the x bit",
		make: nftHost + "rm /usr/sbin/iptables; cp /bin/true /usr/sbin/iptables; chmod 644 /usr/sbin/iptables",
		want: "no-program", says: "A call of iptables fails: run /usr/sbin/iptables: permission denied.",
		shows: "-rw-r--r--",
	},
	{
		doc:  "a closed directory",
		make: nftHost + "chmod 700 /usr/sbin", as: ambient, want: "no-program", says: "Let everybody enter /usr/sbin",
	},
	{
		doc: "no more processes", make: nftHost, as: []string{examineVariable + "=processes"}, want: "no-program",
		says: "resource temporarily unavailable), so this report is incomplete.",
	},
	{
		doc: "no more descriptors", make: nftHost, as: []string{examineVariable + "=descriptors"}, want: "no-program",
		says: "too many open files",
	},
	{
		doc: "no /proc", make: nftHost + "mkdir /run/mount", want: "no-program", says: "do:   Mount /proc",
		as: []string{"unshare", "--mount", "sh", "-ec", "mount -t tmpfs none /proc; exec \"$@\"", "sh"},
	},
}

// In ownSituations, the network is the Pod's own.
var ownSituations = []situation{
	{
		doc: "a user namespace, and a mesh in one backend", make: ":", want: "uncertain",
		as:   inOwn("iptables-nft -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 1"),
		says: "set IPTABLES_WRAPPER_BACKEND=nft in each of them",
	},
	{
		doc:  "a Pod's network, and a mesh in legacy",
		make: pod + "iptables-legacy -t nat -N ISTIO_OUTPUT; iptables-legacy -t nat -A OUTPUT -j ISTIO_OUTPUT",
		want: "uncertain", says: "set IPTABLES_WRAPPER_BACKEND=legacy in each of them",
	},
	{
		doc:  "a Pod's network, and both backends",
		make: pod + "for b in nft legacy; do iptables-$b -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 1; done",
		want: "both-backends uncertain", says: "Then delete the Pod",
	},
	{
		doc:  "a Pod's network, legacy by the variable, and a read-only /run",
		make: pod + "mount -o remount,ro /run", env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}, want: "lock",
		says: "Mount an emptyDir at /run, the same in all containers of the Pod",
	},
	{
		doc: "a container's network, and Docker's DNS in legacy",
		make: pod + "iptables-legacy -t nat -N DOCKER_OUTPUT; iptables-legacy -t nat -A OUTPUT -d 127.0.0.11 -j " +
			"DOCKER_OUTPUT; iptables-legacy -t nat -A DOCKER_OUTPUT -d 127.0.0.11 -p udp -j DNAT --to-destination " +
			"127.0.0.11:5353",
		env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, want: "both-backends", says: "WARNING  both-backends: The other",
	},
}

// In adviceSituations, the ordinary remedy would fail.
var adviceSituations = []situation{
	{
		doc:  "nft is stored on a read-only root",
		make: legacyHst + storedNFT + readOnly, want: "wrong-backend", says: "do:   Reset where the switch is from",
	},
	{
		doc:  "kubelet's hint in both, and nft is stored",
		make: nftHost + legacyHst + storedNFT, want: "uncertain",
		says: "If it is legacy, run iptables-wrapper select legacy in this container.",
	},
	{
		doc:  "the switch is gone",
		make: nftHost + "rm /usr/sbin/iptables-current", want: "no-program", says: "do:   Run iptables-wrapper install",
	},
	{
		doc:  "the switch leads to a foreign program",
		make: nftHost + "ln -sf /bin/true /usr/sbin/iptables-current", want: "not-wrapped",
		says: "PROBLEM  not-wrapped", shows: "iptables-current -> /bin/true",
	},
	{
		doc: "two programs of the host in two backends",
		make: "iptables-nft -N DOCKER-USER; iptables-nft -A FORWARD -j DOCKER-USER; iptables-legacy -N " +
			"ufw-user-input; iptables-legacy -A INPUT -j ufw-user-input",
		want: "both-backends uncertain", says: "A reboot does not fix that.",
	},
	{
		doc:  "the program has the mode 644",
		make: nftHost + "chmod 644 /usr/sbin/xtables-nft-multi", want: "no-program", says: "check the file's mode",
	},
	{
		doc:  "others can write /usr/sbin",
		make: nftHost + "chmod g+w /usr/sbin", want: "uncertain", says: `"/usr/sbin" can be written by users other than root`,
	},
	{
		doc: "firewalld, Podman and libvirt on nftables alone",
		make: "for t in 'inet firewalld' 'inet netavark' 'ip libvirt_network'; do nft add table $t; nft add chain $t " +
			"c '{ type filter hook input priority 10; }'; nft add rule $t c ct state invalid drop; done",
		says: "inet netavark: 1 rule",
	},
	{
		doc:  "another copy in another standard directory",
		make: nftHost + "cp /usr/sbin/xtables-nft-multi /usr/local/sbin/iptables-save", env: []string{
			"PATH=/usr/sbin:/usr/bin:/bin"}, want: "not-wrapped", says: "/usr/local/sbin/iptables-save",
	},
}
