// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

// steady is whether a container keeps its backend from its first write to its end, and follows kubelet all the same.
func steady() []situation {
	var list []situation
	for _, s := range []struct{ name, want, script string }{
		{"the client flushes all tables and kubelet's hint itself, then writes", "legacy", `
			hint legacy ip; hint legacy ip6; fill legacy 5
			for table in mangle nat filter; do
				call iptables -t $table -F; call iptables -t $table -X
				call ip6tables -t $table -F; call ip6tables -t $table -X
			done
			client`},
		{"the client flushes what Docker wrote, then writes", "legacy", `
			fill legacy 5; call iptables -F; client`},
		{"a guess writes, the other backend fills up, -D of its own rule", "nft, nowhere", `
			add 192.0.2.7; where 192.0.2.7; fill legacy 6; call iptables -D INPUT -s 192.0.2.7 -j ACCEPT
			where 192.0.2.7`},
		{"a guess creates a chain, the other backend fills up, -A to that chain", "nft", `
			call iptables -N MINE; fill legacy 6; call iptables -A MINE -s 192.0.2.7 -j ACCEPT; where 192.0.2.7`},
		{"a guess sets policy DROP, the other backend fills up, then ACCEPT", "nft, nft", `
			call iptables -P INPUT DROP; call iptables -A INPUT -i lo -j ACCEPT; fill legacy 6
			call iptables -A INPUT -s 192.0.2.7 -j ACCEPT; where 'INPUT DROP'; where 192.0.2.7`},
		{"a guess writes and flushes, the other backend fills up, then a write", "nft", `
			add 192.0.2.7; call iptables -F; fill legacy 6; client`},
		{"a guess only reads, then the host gets rules, then a write", "legacy", `
			call iptables -S; call iptables-save; call iptables --version; call ip6tables -L -n
			call iptables-restore --version
			fill legacy 6; client`},
		{"a guess only deletes, then the host gets rules, then a write", "legacy", `
			try iptables -D INPUT -s 192.0.2.7 -j ACCEPT; try iptables -C INPUT -s 192.0.2.7 -j ACCEPT; call iptables -F
			call iptables -X; fill legacy 6; client`},
		{"a guess writes in a way that looks like a read, the other backend fills up, -D", "nft, nowhere", `
			rule='INPUT -s 192.0.2.7 -m comment --comment -L -j ACCEPT'
			call iptables -A $rule; where 192.0.2.7; fill legacy 6; call iptables -D $rule; where 192.0.2.7`},
		{"a guess writes as -vA, then the other backend fills up, then --app and -IINPUT", "nft, nft, nft", `
			call iptables -vA INPUT -s 192.0.2.7 -j ACCEPT; fill legacy 6
			call iptables --app INPUT -s 192.0.2.8 -j ACCEPT
			call iptables -IINPUT -s 192.0.2.9 -j ACCEPT; where 192.0.2.7; where 192.0.2.8; where 192.0.2.9`},
		{"a guess reads in ways that look like a write, then the host gets rules, then a write", "legacy", `
			call iptables -SINPUT; call iptables -nL INPUT; call iptables -nt nat -L; call iptables --list-r
			call iptables -vnxL INPUT; fill legacy 6; client`},
		{"a guess only tests a restore, then the host gets rules, then a write", "legacy", `
			printf '*filter\n-A INPUT -j ACCEPT\nCOMMIT\n' | call iptables-restore --test; fill legacy 6; client`},
		{"a guess writes, then kubelet's hint appears in the other backend", "nft, legacy", `
			add 192.0.2.7; where 192.0.2.7; hint legacy ip; client`},
		{"a guess writes, then kubelet's canary appears in the other backend", "nft, legacy", `
			add 192.0.2.7; where 192.0.2.7; canary legacy ip6; client`},
		{"a guess writes, then a process with one capability less deletes", "nft, nowhere", `
			add 192.0.2.7; where 192.0.2.7; fill legacy 6
			call setpriv --bounding-set=-sys_ptrace --inh-caps=-all iptables -D INPUT -s 192.0.2.7 -j ACCEPT
			where 192.0.2.7`},
		{"a guess writes, the container restarts, the host has other rules by then", "nft, legacy", `
			restarted() {
				unshare --mount --pid --fork sh -ec '
					mount -t proc none /proc; mount -t tmpfs none /run
					'"$new_dev; $1"
			}
			restarted 'iptables -A INPUT -s 192.0.2.7 -j ACCEPT'; where 192.0.2.7; fill legacy 6
			restarted 'iptables -A INPUT -s 192.0.2.8 -j ACCEPT'; where 192.0.2.8`},
		{"a guess writes in another network namespace, then a write here on a legacy host", "legacy", `
			ip netns add pod; call ip netns exec pod iptables -A INPUT -s 192.0.2.7 -j ACCEPT; fill legacy 6; client`},
	} {
		list = append(list,
			situation{group: "steady", name: s.name, want: s.want, script: s.script},
			situation{group: "steady, read-only root", name: s.name, want: s.want, script: "read_only\n" + s.script})
	}
	for _, s := range []struct{ group, name, want, script string }{
		{"steady", "the host's /dev is mounted, a guess writes, the other backend fills up, then a write", "nft",
			`host_dev; add 192.0.2.7; fill legacy 6; client`},
		{"steady", "the host's /dev is mounted, the client flushes what Docker wrote, then writes", "legacy",
			`host_dev; fill legacy 5; call iptables -F; client`},
		{"steady, read-only root", "the host's /dev is mounted, a guess writes", "nft", `read_only; host_dev; client`},
		{"steady, read-only root", "the host's /dev is mounted, hint in legacy", "legacy",
			`read_only; host_dev; hint legacy ip; client`},
		{"steady, read-only root", "nothing can be written, rules in legacy", "legacy",
			`read_only; full_dev; fill legacy 3; client`},
		{"steady, read-only root", "/run is read-only, a guess writes", "nft",
			`read_only; touch /run/xtables.lock; mount -o remount,bind,ro /run; client`},
	} {
		list = append(list, situation{group: s.group, name: s.name, want: s.want, script: s.script})
	}
	return list
}

// memory is whether a container keeps its backend for the right reason only, and whom else it binds.
func memory() []situation {
	list := []situation{
		{name: "the client lists while the host's rules are being reloaded, and leftovers are in the other backend",
			want: "legacy", script: `
			fill nft 2; call iptables -S; fill legacy 6; client`},
		{name: "a call without CAP_NET_ADMIN tries to write, then the host gets rules", want: "legacy", script: `
			try setpriv --bounding-set=-net_admin --inh-caps=-all iptables -A INPUT -s 192.0.2.7 -j ACCEPT
			fill legacy 6; client`},
		{name: "rules in legacy, the first write meets ENFILE at its first socket", want: "legacy", script: `
			fill legacy 6
			try strace -f -qq -o trace -e trace=socket -e inject=socket:error=ENFILE:when=1 \
				iptables -A INPUT -s 192.0.2.7 -j ACCEPT
			client`},
		{name: "rules in legacy, the first write meets ENFILE at each socket", want: "legacy", script: `
			fill legacy 6
			try strace -f -qq -o trace -e trace=socket -e inject=socket:error=ENFILE \
				iptables -A INPUT -s 192.0.2.7 -j ACCEPT
			client`},
		{name: "root writes and flushes, then another user writes", want: "legacy", script: `
			fill legacy 3; add 192.0.2.7; call iptables -F; user iptables -A INPUT -s 192.0.2.8 -j ACCEPT
			where 192.0.2.8`},
		{name: "another user holds a lock of the commands' directory, the client flushes the hint, then a write",
			want: "legacy", script: `
			mkfifo -m 666 held
			setpriv --reuid=65534 --regid=65534 --clear-groups flock -s /usr/sbin \
				sh -c 'echo >held; exec sleep 60' >/dev/null 2>&1 &
			read -r line <held
			hint legacy ip; add 192.0.2.7; call iptables -t mangle -X; call iptables -F; client; kill $!`},
	}
	var all []situation
	roots := []struct{ group, script string }{
		{"memory", ""},
		{"memory, read-only root", "read_only\n"},
	}
	for _, root := range roots {
		for _, s := range list {
			s.group = root.group
			s.script = root.script + s.script
			all = append(all, s)
		}
	}
	// On a writable root, what the first call of root finds is final.
	return append(all, situation{
		group: "memory, read-only root",
		name:  "another user guesses and writes, then kubelet's hint appears in the other backend, and root writes",
		want:  "legacy",
		script: `read_only
			user iptables -A INPUT -s 192.0.2.7 -j ACCEPT; user iptables -A INPUT -s 192.0.2.8 -j ACCEPT
			call iptables -w -P INPUT ACCEPT; hint legacy ip; client`,
	})
}
