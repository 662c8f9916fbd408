// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"strings"
	"time"
)

// In runSituations, iptables may not run at all.
var runSituations = []situation{
	{
		doc:  "no program for legacy",
		make: legacyHst + "rm /usr/sbin/*legacy*", want: "no-program",
		says: "iptables fails here: no such program: iptables-legacy or xtables-legacy-multi", shows: "no such program",
	},
	{
		doc:  "no iptables in PATH",
		make: nftHost, env: []string{"PATH=/usr/bin:/bin"}, want: "no-program",
		says: "it is in /usr/sbin, which is not in PATH",
	},
	{
		doc:  "no iptables at all",
		make: nftHost + "rm /usr/sbin/ip*tables* /usr/sbin/xtables*", want: "no-program",
		says: "There is no iptables in PATH",
	},
	{
		doc:  "the switch leads to itself",
		make: nftHost + "ln -sfT iptables-current /usr/sbin/iptables-current", want: "no-program",
		says: "leads in a circle", shows: "iptables-current -> iptables-current",
	},
	{
		doc:  "the switch leads to nothing",
		make: nftHost + "ln -sf gone /usr/sbin/iptables-current", want: "no-program",
		says: "If the image has iptables' programs, run iptables-wrapper reset", shows: "iptables-current -> gone",
	},
	{
		doc:  "the program cannot be executed",
		make: nftHost + "chmod 644 /usr/sbin/xtables-nft-multi", want: "no-program", says: "permission denied",
	},
	{
		doc:  "no libraries of matches",
		make: nftHost, env: []string{"XTABLES_LIBDIR=/nowhere"}, want: "no-program",
		says: "Remove the environment variable XTABLES_LIBDIR",
	},
	{
		doc: "a program of another architecture",
		make: nftHost + "head -c 4000 /usr/sbin/xtables-nft-multi >/run/p; mount --bind /run/p " +
			"/usr/sbin/xtables-nft-multi; chmod 755 /run/p",
		want: "no-program", says: "/usr/sbin/iptables-nft does not start",
	},
	{
		doc: "a program that fails for a reason of its own",
		make: nftHost + "rm /usr/sbin/iptables-nft-save; printf '#!/bin/sh\\necho no way; exit 7\\n' " +
			">/usr/sbin/iptables-nft-save; chmod 755 /usr/sbin/iptables-nft-save",
		want: "no-program", says: `iptables fails here (exit status 7): "iptables-save -t mangle" printed "no way".`,
		shows: "no way",
	},
	{
		doc: "a program that hangs",
		make: nftHost + "printf '#!/bin/sh\\nsleep 1000 & wait\\n' >/run/p; chmod 755 /run/p; mount --bind /run/p " +
			"/usr/sbin/xtables-nft-multi",
		want: "no-program", says: `"/usr/sbin/iptables-nft" did not end in time`, limit: time.Millisecond,
	},

	{
		doc:  "the kernel lacks a match",
		make: nftHost + lackingMatch("iptables"), want: "kernel",
		says: `The kernel lacks its part of -m comment, so such rules fail.`, shows: "missing kernel module?",
	},
	{
		again: true, doc: "the kernel lacks a match for IPv6",
		make: nftHost + lackingMatch("ip6tables"), want: "kernel", shows: "missing kernel module?",
	},

	{
		doc: "a chain of nft's in iptables' table",
		make: nftHost + "nft add table ip filter; nft add chain ip filter mine '{ type filter hook input priority 0; " +
			"}'",
		want: "nft-table",
		says: "WARNING  nft-table: iptables does not list base chains that were made with nft in " +
			"ip filter. Packets pass them",
		shows: "chain mine",
	},
	{
		doc: "sets, a range and a map of nft in iptables' chains",
		make: nftHost + "iptables-nft -N MAILCOW; iptables-nft -P INPUT ACCEPT; for r in 'tcp dport { 3306, 6379 } " +
			"drop' 'ip saddr { 192.0.2.1, 192.0.2.9 } drop' 'ip saddr 192.0.2.1-192.0.2.9 drop' 'iifname { \"a\", " +
			"\"b\" } drop'; do nft add rule ip filter MAILCOW \"$r\"; done; nft add rule ip filter INPUT tcp dport " +
			"vmap { 22 : accept, 23 : drop }",
		want: "nft-table",
		says: `Rules were made with nft in chain "INPUT" of ip filter, chain "MAILCOW" of ip filter (mailcow). iptables ` +
			`may list such rules without their conditions`,
		shows: "tcp dport { 3306, 6379 } drop",
	},
	{
		doc:  "a rule of nft that iptables lists, and which has no counter",
		make: nftHost + "iptables-nft -N MINE; nft add rule ip filter MINE ip saddr 192.0.2.1 drop", want: "nft-table",
		says:  `WARNING  nft-table: Rules were made with nft in chain "MINE" of ip filter.`,
		shows: "-A MINE -s 192.0.2.1/32 -j DROP",
	},
	{
		doc: "rules of nft in a user chain that iptables cannot read",
		make: nftHost + "iptables-nft -N ts-input; for r in 'meta mark set mark and 1 xor 2' 'meta skuid 1 drop' 'ip " +
			"dscp 8 drop' 'ip length 9 drop' 'ct state new drop'; do nft add rule ip filter ts-input \"$r\"; done",
		want: "nft-table", says: `PROBLEM  nft-table: iptables cannot list ip filter, nor check or remove a rule in it`,
		shows: "use 'nft' tool",
	},
	{
		doc:  "a rule of nft at which iptables crashes",
		make: nftHost + "iptables-nft -N MINE; nft add rule ip filter MINE tcp flags == syn drop", want: "nft-table",
		says: `PROBLEM  nft-table: iptables cannot list ip filter`,
	},
	{
		again: true, doc: "a mark that only a newer iptables can read",
		make: nftHost + "iptables-nft -N MINE; nft add rule ip filter MINE meta mark set 1", want: "nft-table",
		says: `made with nft in chain "MINE" of ip filter`, shows: "meta mark set",
	},
	{
		again: true, doc: "a rule of nft's in iptables' chain",
		make: nftHost + "iptables-nft -P INPUT ACCEPT; nft add rule ip filter INPUT meta mark set numgen inc mod 2",
		want: "nft-table",
	},
	{
		again: true, doc: "a chain of nft's with iptables' name, and another priority",
		make: nftHost + "nft add table ip filter; nft add chain ip filter INPUT '{ type filter hook input priority " +
			"5; }'",
		want: "nft-table",
	},
	{
		again: true, doc: "a chain of nft's for IPv6, with a policy",
		make: nftHost + "nft add table ip6 filter; nft add chain ip6 filter mine '{ type filter hook input priority " +
			"0; policy drop; }'",
		want: "nft-table",
	},
	{
		again: true, doc: "chains of nft's in two tables",
		make: nftHost + "for t in filter nat; do nft add table ip $t; nft add chain ip $t mine '{ type filter hook " +
			"input priority 0; }'; done",
		want: "nft-table", says: "base chains that were made with nft in ip nat",
	},

	{
		again: true, doc: "the lock is a directory",
		make: legacyHst + "rm -f /run/xtables.lock; mkdir /run/xtables.lock", want: "lock",
		says: "is a directory or a FIFO",
	},
	{
		again: true, doc: "the lock is a FIFO",
		make: legacyHst + "rm -f /run/xtables.lock; mkfifo /run/xtables.lock", want: "lock",
	},
	{
		doc:  "/run is read-only",
		make: legacyHst + "rm -f /run/xtables.lock; mount -o remount,ro /run", want: "lock", shows: " /run tmpfs ro",
	},
	{
		doc:  "the lock is another user's",
		make: legacyHst + "chmod 600 /run/xtables.lock", env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}, as: ambient,
		want: "lock uncertain", says: "make a file /run/xtables.lock that belongs to this user", shows: "-rw-------",
	},
	{
		doc: "the lock is held",
		make: legacyHst + "flock -o /run/xtables.lock sleep 1000 >/dev/null 2>&1 &\nuntil ! flock -n " +
			"/run/xtables.lock true; do :; done",
		want: "lock", says: "another process held the lock of iptables-legacy, /run/xtables.lock, for a second",
		shows: "Another app is currently holding the xtables lock",
	},
	{
		again: true, doc: "the lock is a directory, and legacy has no table yet",
		make: "mkdir /run/xtables.lock", env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}, want: "lock",
		says: "is a directory or a FIFO",
	},
	{
		again: true, doc: "/run is read-only, and legacy has no table yet",
		make: "mount -o remount,ro /run", env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}, want: "lock",
	},
	{
		doc:  "XTABLES_LOCKFILE is nowhere",
		make: legacyHst, env: []string{"XTABLES_LOCKFILE=/nowhere/lock"}, want: "lock",
		says: "Remove the environment variable XTABLES_LOCKFILE", shows: "/nowhere/lock",
	},
	{
		again: true, doc: "XTABLES_LOCKFILE is a directory",
		make: legacyHst, env: []string{"XTABLES_LOCKFILE=/run"}, want: "lock", says: "is a directory or a FIFO",
	},
	{
		again: true, doc: "the lock is held, and legacy has IPv6 alone",
		make: "ip6tables-legacy" + hint + "flock -o /run/xtables.lock sleep 1000 >/dev/null 2>&1 &\nuntil ! flock -n " +
			"/run/xtables.lock true; do :; done",
		want: "lock",
	},

	{doc: "1.8.7, kubelet uses nft", make: oldPrograms + nftHost, want: "old-iptables", says: "1.8.7"},
	{
		again: true, doc: "1.8.7, Docker uses nft",
		make: oldPrograms + "iptables-nft -N DOCKER-USER", want: "old-iptables",
	},
	{
		again: true, doc: "1.8.7, stored",
		make: oldPrograms + nftHost + storedNFT, want: "old-iptables",
	},
	{
		again: true, doc: "1.8.7, and the variable",
		make: oldPrograms, env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, want: "old-iptables",
	},
	{
		again: true, doc: "1.8.7, not wrapped",
		make: oldPrograms + nftHost + direct + "/usr/sbin/iptables", want: "old-iptables not-wrapped",
	},
	{doc: "1.8.7, kubelet uses legacy", make: oldPrograms + legacyHst},
	{
		doc:  "1.8.7, and a newer iptables has made a rule with a range of ports",
		make: nftHost + "iptables-nft -A INPUT -p tcp --dport 10:20 -j DROP\n" + oldPrograms, want: "nft-table old-iptables",
		says:  "PROBLEM  nft-table: iptables cannot list ip filter, nor check or remove a rule in it",
		shows: "use 'nft' tool",
	},
	{
		doc:  "1.8.7, and a rule of nft",
		make: nftHost + "iptables-nft -P INPUT ACCEPT; nft add rule ip filter INPUT ct state new\n" + oldPrograms,
		want: "nft-table old-iptables", says: "WARNING  old-iptables",
	},
}

// oldPrograms puts iptables 1.8.7 in the place of the newer one, with its library and extensions.
const oldPrograms = `for f in "$OLD"/usr/sbin/* "$OLD"/usr/lib/*/libxtables.so.12 "$OLD"/usr/lib/*/xtables; do
	mount --bind "$f" "${f#"$OLD"}"
done
`

// lackingMatch has the kernel answer iptables-nft that it does not have a match: to the second socket, over which
// iptables-nft asks for nothing else.
func lackingMatch(command string) string {
	return strings.ReplaceAll(`rm /usr/sbin/COMMAND-nft; cp /usr/sbin/xtables-nft-multi /run/COMMAND
cat >/usr/sbin/COMMAND-nft <<EOF
#!/bin/sh
exec strace -o /dev/null -e trace=socket -e inject=socket:error=EPROTONOSUPPORT:when=2 /run/COMMAND "\$@"
EOF
chmod 755 /usr/sbin/COMMAND-nft
`, "COMMAND", command)
}
