// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

// steady is whether a container keeps its backend from its first call to its end, and follows a name all the same.
func steady() []situation {
	var list []situation
	for _, s := range []struct{ name, want, script string }{
		{"the client flushes all tables and kubelet's hint itself, then adds rules", "legacy", `
			hint legacy ip; hint legacy ip6; fill legacy 5
			for table in mangle nat filter; do
				call iptables -t $table -F; call iptables -t $table -X
				call ip6tables -t $table -F; call ip6tables -t $table -X
			done
			client`},
		{"a kill switch: both policies DROP, all of Docker's rules flushed, then rules", "legacy, legacy, legacy", `
			iptables-legacy -t nat -A OUTPUT -d 127.0.0.11 -p udp --dport 53 -j DNAT --to-destination 127.0.0.11:1053
			call iptables -P INPUT DROP; call iptables -P OUTPUT DROP; call iptables -F; call iptables -t nat -F
			call iptables -A OUTPUT -o lo -j ACCEPT
			where 'INPUT DROP'; where 'OUTPUT DROP'; where '-o lo'
			saved nft 'OUTPUT DROP' | grep DROP || :`},
		{"a guess lists, the other backend gets rules, then rules", "nft", `
			call iptables -S; fill legacy 6; client`},
		{"a guess adds a rule, the other backend gets rules, -D of that rule", "nft, nowhere", `
			add 192.0.2.7; where 192.0.2.7; fill legacy 6; call iptables -D INPUT -s 192.0.2.7 -j ACCEPT
			where 192.0.2.7`},
		{"a guess adds a rule, then kubelet's hint appears in the other backend", "nft, legacy", `
			add 192.0.2.7; where 192.0.2.7; hint legacy ip; client`},
		{"a guess adds a rule, then kubelet's canary appears in the other backend", "nft, legacy", `
			add 192.0.2.7; where 192.0.2.7; canary legacy ip6; client`},
		{"a guess adds a rule, then Docker's chain appears in the other backend", "nft, legacy", `
			add 192.0.2.7; where 192.0.2.7; iptables-legacy -N DOCKER-USER; client`},
		{"a guess adds a rule, then a process with one capability less deletes it", "nft, nowhere", `
			add 192.0.2.7; where 192.0.2.7; fill legacy 6
			call setpriv --bounding-set=-sys_ptrace --inh-caps=-all iptables -D INPUT -s 192.0.2.7 -j ACCEPT
			where 192.0.2.7`},
		{"a guess adds a rule, the container restarts, the host has other rules by then", "nft, legacy", `
			restarted() {
				unshare --mount --pid --fork sh -ec '
					mount -t proc none /proc; mount -t tmpfs none /run
					'"$new_dev; $1"
			}
			restarted 'iptables -A INPUT -s 192.0.2.7 -j ACCEPT'; where 192.0.2.7; fill legacy 6
			restarted 'iptables -A INPUT -s 192.0.2.8 -j ACCEPT'; where 192.0.2.8`},
		{"a guess adds a rule in another network namespace, then rules here on a legacy host", "legacy", `
			ip netns add pod; call ip netns exec pod iptables -A INPUT -s 192.0.2.7 -j ACCEPT; fill legacy 6; client`},
		{"root adds a rule and flushes, then another user adds one", "legacy", `
			fill legacy 3; add 192.0.2.7; call iptables -F; user iptables -A INPUT -s 192.0.2.8 -j ACCEPT
			where 192.0.2.8`},
		{"a call without CAP_NET_ADMIN, then the host gets rules, then rules", "legacy", `
			try setpriv --bounding-set=-net_admin --inh-caps=-all iptables -A INPUT -s 192.0.2.7 -j ACCEPT
			fill legacy 6; client`},
		{"rules in legacy, the first call meets ENFILE at each socket, then rules", "legacy", `
			fill legacy 6
			try strace -f -qq -o trace -e trace=socket -e inject=socket:error=ENFILE \
				iptables -A INPUT -s 192.0.2.7 -j ACCEPT
			client`},
		{"another user holds a lock of the commands' directory, the client flushes the hint, then rules", "legacy", `
			mkfifo -m 666 held
			setpriv --reuid=65534 --regid=65534 --clear-groups flock -s /usr/sbin \
				sh -c 'echo >held; exec sleep 60' >/dev/null 2>&1 &
			read -r line <held
			hint legacy ip; add 192.0.2.7; call iptables -t mangle -X; call iptables -F; client; kill $!`},
	} {
		list = append(list,
			situation{group: "steady", name: s.name, want: s.want, script: s.script},
			situation{group: "steady, read-only root", name: s.name, want: s.want, script: "read_only\n" + s.script})
	}
	for _, s := range []struct{ group, name, want, script string }{
		{"steady", "/dev is the host's, the client flushes kubelet's hint, then adds rules", "legacy",
			`host_dev; hint legacy ip; call iptables -t mangle -X; client`},
		{"steady, read-only root", "/dev is the host's, hint in legacy", "legacy",
			`read_only; host_dev; hint legacy ip; client`},
		{"steady, read-only root", "nothing can be made in /dev, rules in legacy", "legacy",
			`read_only; full_dev; fill legacy 3; client`},
		{"steady, read-only root", "/run is read-only, a guess adds rules", "nft",
			`read_only; touch /run/xtables.lock; mount -o remount,bind,ro /run; client`},
		{"steady, read-only root", "another user adds rules, then kubelet's hint appears in the other backend, " +
			"and root adds some", "legacy", `read_only
			user iptables -A INPUT -s 192.0.2.7 -j ACCEPT; user iptables -A INPUT -s 192.0.2.8 -j ACCEPT
			call iptables -w -P INPUT ACCEPT; hint legacy ip; client`},
	} {
		list = append(list, situation{group: s.group, name: s.name, want: s.want, script: s.script})
	}
	return list
}
