// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

// steady is whether a container keeps its backend from its first write to its end, and follows kubelet all the same.
func steady() []situation {
	var list []situation
	for _, s := range []struct{ name, want, script string }{
		{"the client flushes all tables and kubelet's hint itself, then writes", "legacy", `
			hint legacy ip; hint legacy ip6; fill legacy 5
			for table in mangle nat filter; do call iptables -t $table -F; call iptables -t $table -X; call ip6tables -t $table -F; call ip6tables -t $table -X; done
			client`},
		{"the client flushes what Docker wrote, then writes", "legacy", `
			fill legacy 5; call iptables -F; client`},
		{"the client replaces the whole table by one restore, then goes on", "legacy", `
			fill legacy 5; printf '*filter\nCOMMIT\n' | call iptables-restore; client`},
		{"a guess writes, the other backend fills up, -D of its own rule", "nft, nowhere", `
			load 192.0.2.7; where 192.0.2.7; fill legacy 6; call iptables -D INPUT -s 192.0.2.7 -j ACCEPT; where 192.0.2.7`},
		{"a guess creates a chain, the other backend fills up, -A to that chain", "nft", `
			call iptables -N MINE; fill legacy 6; call iptables -A MINE -s 192.0.2.7 -j ACCEPT; where 192.0.2.7`},
		{"a guess sets policy DROP, the other backend fills up, then ACCEPT", "nft, nft", `
			call iptables -P INPUT DROP; call iptables -A INPUT -i lo -j ACCEPT; fill legacy 6
			call iptables -A INPUT -s 192.0.2.7 -j ACCEPT; where 'INPUT DROP'; where 192.0.2.7`},
		{"a guess writes and flushes, the other backend fills up, then a write", "nft", `
			load 192.0.2.7; call iptables -F; fill legacy 6; client`},
		{"a guess only reads, then the host gets rules, then a write", "legacy", `
			call iptables -S; call iptables-save; call iptables --version; call ip6tables -L -n; call iptables-restore --version
			fill legacy 6; client`},
		{"a guess only deletes, then the host gets rules, then a write", "legacy", `
			call iptables -D INPUT -s 192.0.2.7 -j ACCEPT >"$TMP/said"; call iptables -C INPUT -s 192.0.2.7 -j ACCEPT >"$TMP/said"
			call iptables -F; call iptables -X; fill legacy 6; client`},
		{"a guess writes in a way that looks like a read, the other backend fills up, -D", "nft, nowhere", `
			rule='INPUT -s 192.0.2.7 -m comment --comment -L -j ACCEPT'
			call iptables -A $rule; where 192.0.2.7; fill legacy 6; call iptables -D $rule; where 192.0.2.7`},
		{"a guess writes as -vA, then the other backend fills up, then --app and -IINPUT", "nft, nft, nft", `
			call iptables -vA INPUT -s 192.0.2.7 -j ACCEPT; fill legacy 6; call iptables --app INPUT -s 192.0.2.8 -j ACCEPT
			call iptables -IINPUT -s 192.0.2.9 -j ACCEPT; where 192.0.2.7; where 192.0.2.8; where 192.0.2.9`},
		{"a guess reads in ways that look like a write, then the host gets rules, then a write", "legacy", `
			call iptables -SINPUT; call iptables -nL INPUT; call iptables -nt nat -L; call iptables --list-r; call iptables -vnxL INPUT; fill legacy 6; client`},
		{"a guess only tests a restore, then the host gets rules, then a write", "legacy", `
			printf '*filter\n-A INPUT -j ACCEPT\nCOMMIT\n' | call iptables-restore --test; fill legacy 6; client`},
		{"a guess writes, then kubelet's hint appears in the other backend", "nft, legacy", `
			load 192.0.2.7; where 192.0.2.7; hint legacy ip; client`},
		{"a guess writes, then kubelet's canary appears in the other backend", "nft, legacy", `
			load 192.0.2.7; where 192.0.2.7; canary legacy ip6; client`},
		{"a guess writes, then a process with one capability less deletes", "nft, nowhere", `
			load 192.0.2.7; where 192.0.2.7; fill legacy 6
			call setpriv --bounding-set=-sys_ptrace --inh-caps=-all iptables -D INPUT -s 192.0.2.7 -j ACCEPT; where 192.0.2.7`},
		{"a guess writes, the container restarts, the host has other rules by then", "nft, legacy", `
			restarted() { unshare --mount --pid --fork sh -ec 'mount -t proc none /proc; mount -t tmpfs none /dev/shm; mount -t tmpfs none /run; '"$1"; }
			restarted 'iptables -A INPUT -s 192.0.2.7 -j ACCEPT'; where 192.0.2.7; fill legacy 6
			restarted 'iptables -A INPUT -s 192.0.2.8 -j ACCEPT'; where 192.0.2.8`},
		{"a guess writes in another network namespace, then a write here on a legacy host", "legacy", `
			ip netns add pod; call ip netns exec pod iptables -A INPUT -s 192.0.2.7 -j ACCEPT; fill legacy 6; client`},
	} {
		list = append(list,
			situation{group: "steady", name: s.name, want: s.want, script: s.script},
			situation{group: "steady, read-only root", name: s.name, want: s.want, script: "read_only\n" + s.script})
	}
	for _, s := range []struct{ name, want, script string }{
		{"/dev/shm is absent, a guess writes", "nft", `mkdir "$TMP/dev"; mount -t tmpfs none "$TMP/dev"; cp -a /dev/null /dev/zero /dev/urandom /dev/tty "$TMP/dev"; mount --move "$TMP/dev" /dev; client`},
		{"/dev/shm is absent, hint in legacy", "legacy", `mkdir "$TMP/dev"; mount -t tmpfs none "$TMP/dev"; cp -a /dev/null /dev/zero /dev/urandom /dev/tty "$TMP/dev"; mount --move "$TMP/dev" /dev; hint legacy ip; client`},
		{"/dev/shm is full, a guess writes", "nft", `mount -t tmpfs -o nr_inodes=1 none /dev/shm; client`},
		{"/dev/shm and /run are read-only, a guess writes", "nft", `touch /run/xtables.lock; mount -o remount,bind,ro /dev/shm; mount -o remount,bind,ro /run; client`},
		{"nothing can be written, rules in legacy", "legacy", `fill legacy 3; mount -t tmpfs -o nr_inodes=1 none /dev/shm; client`},
		{"the client flushes the hint, /dev/shm is full", "legacy", `mount -t tmpfs -o nr_inodes=1 none /dev/shm; hint legacy ip; call iptables -t mangle -X; client`},
	} {
		list = append(list, situation{group: "steady, read-only root", name: s.name, want: s.want, script: "read_only\n" + s.script})
	}
	return list
}

// races are first calls at once.
func races() []situation {
	const together = `
		together() { # NUMBER PROGRAM ARGUMENTS...: {} is the number of the call
			n=$1; shift
			seq "$n" | PATH=$PLAIN xargs -P "$n" -I{} "$@" 2>>errors >>out || touch failed
		}
		count() { (iptables-$1-save; ip6tables-$1-save) 2>/dev/null | grep -c 'INPUT -s 10\.9\.' || :; }
		verdict() { [ ! -e failed ] || echo "some fail"; grep -v '^# Warning: ip6*tables-legacy tables present' errors | head -n 1 | cut -c -60; echo "legacy $(count legacy), nft $(count nft)"; }
		one() { case "$(verdict)" in "legacy 20, nft 0"|"legacy 0, nft 20") echo "all in one backend" ;; *) verdict ;; esac; }
		`
	var list []situation
	for _, root := range []struct{ group, script string }{{"race", ""}, {"race, read-only root", "read_only\n"}} {
		for _, s := range []struct{ name, want, script string }{
			{"20 first writers at once, rules in legacy", "legacy 20, nft 0", `fill legacy 3; together 20 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; verdict`},
			{"20 first writers at once, hint in nft", "legacy 0, nft 20", `hint nft ip; together 20 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; verdict`},
			{"20 first writers at once, nothing on the host", "legacy 0, nft 20", `together 20 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; verdict`},
			{"20 first writers and 20 readers, while the other backend fills up", "all in one backend", `
				fill legacy 2
				(for i in $(seq 30); do fill nft 1 ip6; done) &
				together 20 iptables -w -S & 
				together 20 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; wait; one`},
			{"10 first writers, nothing on the host, while the other backend fills up; then 10 more", "all in one backend", `
				(for i in $(seq 30); do fill legacy 1 ip6; done) &
				together 10 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; wait; together 10 iptables -w -A INPUT -s 10.9.1.{} -j ACCEPT; one`},
		} {
			list = append(list, situation{group: root.group, name: s.name, want: s.want, script: together + root.script + s.script})
		}
	}
	return append(list,
		situation{group: "race", name: "300 first calls, 20 at once, hint in legacy", want: "none fails, none says anything", run: firstCalls},
		situation{group: "race", name: "the names while first calls run", want: "never missing", run: neverMissing},
		situation{group: "race", name: "a first call killed before each call that changes a file", want: "every name works, all in one backend", run: killed})
}
