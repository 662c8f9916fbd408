// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import "time"

// In runSituations, iptables may not run at all.
var runSituations = []situation{
	{
		doc:  "no program for legacy",
		make: legacyHst + "rm /usr/sbin/*legacy*", want: "no-program", says: "iptables fails here, with status 127",
	},
	{
		doc:  "no iptables in PATH",
		make: nftHost, env: []string{"PATH=/usr/bin:/bin"}, want: "no-program",
		says: "it is in /usr/sbin, which is not in PATH",
	},
	{
		doc:  "no iptables at all",
		make: nftHost + "rm /usr/sbin/ip*tables* /usr/sbin/xtables*", want: "no-program", says: "There is no " +
			"iptables here",
	},
	{
		doc:  "ip6tables is missing",
		make: nftHost + "rm /usr/sbin/ip6tables", want: "no-program",
		says: "Some of the six commands lead to nothing: /usr/sbin/ip6tables.",
	},
	{
		doc:  "the switch leads to nothing",
		make: nftHost + "ln -sf gone /usr/sbin/iptables-current", want: "no-program",
	},
	{
		doc:  "the program cannot be executed",
		make: nftHost + "chmod 644 /usr/sbin/xtables-nft-multi", want: "no-program", says: "permission denied",
	},
	{
		doc:  "no libraries of matches",
		make: nftHost, env: []string{"XTABLES_LIBDIR=/nowhere"}, want: "no-program", says: "Couldn't load match",
	},
	{
		doc: "a program of another architecture",
		make: nftHost + "head -c 4000 /usr/sbin/xtables-nft-multi >/run/p; mount --bind /run/p " +
			"/usr/sbin/xtables-nft-multi; chmod 755 /run/p",
		want: "no-program", says: "its program for nft does not work",
	},
	{
		doc: "a program that hangs",
		make: nftHost + "printf '#!/bin/sh\\nsleep 1000 & wait\\n' >/run/p; chmod 755 /run/p; mount --bind /run/p " +
			"/usr/sbin/xtables-nft-multi",
		want: "no-program", says: "did not end within", limit: time.Millisecond,
	},

	{
		doc:  "a chain of nft's in iptables' table",
		make: nftHost + "nft add table ip filter; nft add chain ip filter mine '{ type filter hook input priority 0; }'",
		want: "nft-table", says: `somebody uses nft directly in its tables (chain "mine" of table filter)`,
	},
	{
		doc:  "a rule of nft's in iptables' chain",
		make: nftHost + "iptables-nft -P INPUT ACCEPT; nft add rule ip filter INPUT meta mark set numgen inc mod 2",
		want: "nft-table",
	},
	{
		doc:  "a chain of nft's with iptables' name, and another priority",
		make: nftHost + "nft add table ip filter; nft add chain ip filter INPUT '{ type filter hook input priority 5; }'",
		want: "nft-table",
	},
	{
		doc: "a chain of nft's for IPv6, with a policy",
		make: nftHost + "nft add table ip6 filter; nft add chain ip6 filter mine '{ type filter hook input priority 0; " +
			"policy drop; }'",
		want: "nft-table",
	},
	{
		doc: "chains of nft's in two tables",
		make: nftHost + "for t in filter nat; do nft add table ip $t; nft add chain ip $t mine '{ type filter hook input " +
			"priority 0; }'; done",
		want: "nft-table", says: `(chain "mine" of table filter, chain "mine" of table nat)`,
	},

	{
		doc:  "the lock is a directory",
		make: legacyHst + "rm -f /run/xtables.lock; mkdir /run/xtables.lock", want: "lock", says: "is not a regular file",
	},
	{doc: "the lock is a FIFO", make: legacyHst + "rm -f /run/xtables.lock; mkfifo /run/xtables.lock", want: "lock"},
	{
		doc:  "/run is read-only",
		make: legacyHst + "rm -f /run/xtables.lock; mount -o remount,ro /run", want: "lock",
	},
	{
		doc: "the lock is held",
		make: legacyHst + "flock -o /run/xtables.lock sleep 1000 >/dev/null 2>&1 &\nuntil ! flock -n /run/xtables.lock " +
			"true; do :; done",
		want: "lock", says: "Another app is currently holding the xtables lock",
	},
	{
		doc:  "the lock is a directory, and legacy has no table yet",
		make: "mkdir /run/xtables.lock", env: []string{"IPTABLES_WRAPPER_MODE=legacy"}, want: "lock",
		says: "is not a regular file",
	},
	{
		doc:  "/run is read-only, and legacy has no table yet",
		make: "mount -o remount,ro /run", env: []string{"IPTABLES_WRAPPER_MODE=legacy"}, want: "lock",
	},
	{
		doc:  "XTABLES_LOCKFILE is nowhere",
		make: legacyHst, env: []string{"XTABLES_LOCKFILE=/nowhere/lock"}, want: "lock",
	},
	{
		doc:  "XTABLES_LOCKFILE is a directory",
		make: legacyHst, env: []string{"XTABLES_LOCKFILE=/run"}, want: "lock", says: "is not a regular file",
	},
	{
		doc: "the lock is held, and legacy has IPv6 alone",
		make: "ip6tables-legacy" + hint + "flock -so /run/xtables.lock sleep 1000 >/dev/null 2>&1 &\n" +
			"until ! flock -n /run/xtables.lock true; do :; done",
		want: "lock",
	},

	{doc: "1.8.7, kubelet uses nft", make: oldPrograms + nftHost, want: "old-iptables", says: "1.8.7"},
	{doc: "1.8.7, Docker uses nft", make: oldPrograms + "iptables-nft -N DOCKER-USER", want: "old-iptables"},
	{doc: "1.8.7, stored", make: oldPrograms + nftHost + storedNFT, want: "old-iptables"},
	{
		doc:  "1.8.7, and the variable",
		make: oldPrograms, env: []string{"IPTABLES_WRAPPER_MODE=nft"}, want: "old-iptables",
	},
	{
		doc:  "1.8.7, not wrapped",
		make: oldPrograms + nftHost + direct + "/usr/sbin/iptables", want: "not-wrapped old-iptables",
	},
	{doc: "1.8.7, kubelet uses legacy", make: oldPrograms + legacyHst},
}

// oldPrograms puts iptables 1.8.7 in the place of the newer one, with its library and extensions.
const oldPrograms = `for f in "$OLD"/usr/sbin/* "$OLD"/usr/lib/*/libxtables.so.12 "$OLD"/usr/lib/*/xtables; do
	mount --bind "$f" "${f#"$OLD"}"
done
`
