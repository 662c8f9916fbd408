// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

func situations() []situation {
	return slices.Concat(hosts(), realNodes(), rights(), programs(), places(), input(), transparency(), signals(),
		inheritance(), steady(), races())
}

// hosts is which backend the client's first rules go to, on hosts of every kind. The oracle decides.
func hosts() []situation {
	var list []situation
	for _, h := range []struct{ name, script string }{
		{"nothing", ``},
		{"hint in legacy", `hint legacy ip`},
		{"hint in legacy, IPv6", `hint legacy ip6`},
		{"hint in nft", `hint nft ip`},
		{"hint in nft, IPv6", `hint nft ip6`},
		{"hint in nft, rules in legacy", `hint nft ip; fill legacy 50`},
		{"hint in legacy, rules in nft", `hint legacy ip6; fill nft 50`},
		{"hints in both", `hint nft ip; hint legacy ip; fill legacy 5`},
		{"hints in both, of one family each", `hint nft ip6; hint legacy ip; fill nft 5`},
		{"hint in legacy, stale canary in nft", `hint legacy ip; canary nft ip`},
		{"hint in nft, stale canary in legacy", `hint nft ip; canary legacy ip`},
		{"canary in legacy", `canary legacy ip`},
		{"canary in legacy, IPv6, rules in nft", `canary legacy ip6; fill nft 5`},
		{"canary in nft, rules in legacy", `canary nft ip; fill legacy 5`},
		{"canaries in both", `canary nft ip; canary legacy ip`},
		{"chains named almost like the hint, rules in legacy",
			`iptables-nft -t mangle -N KUBE-IPTABLES-HINT-OLD; iptables-nft -t mangle -N XKUBE-IPTABLES-HINT
				fill legacy 1`},
		{"chains named almost like the hint, rules in nft",
			`iptables-legacy -t mangle -N KUBE-IPTABLES-HINT-OLD; fill nft 1`},
		{"hint in another table, rules in the other backend",
			`iptables-legacy -N KUBE-IPTABLES-HINT; ip6tables-legacy -t nat -N KUBE-KUBELET-CANARY; fill nft 1`},
		{"hint in a native table, rules in legacy",
			`nft add table inet mangle; nft add chain inet mangle KUBE-IPTABLES-HINT; fill legacy 1`},
		{"one rule in legacy", `iptables-legacy -t raw -A OUTPUT -j ACCEPT`},
		{"one rule in legacy, IPv6", `ip6tables-legacy -t nat -A OUTPUT -j ACCEPT`},
		{"more rules in legacy", `fill nft 9; fill legacy 5; fill legacy 5 ip6`},
		{"more rules in nft", `fill legacy 9; fill nft 5; fill nft 5 ip6`},
		{"as many rules in both", `fill legacy 3; fill nft 3`},
		{"chains and policies in nft, a rule in legacy",
			`iptables-nft -P FORWARD DROP; for n in A B C; do iptables-nft -N $n; done; fill legacy 1`},
		{"Docker's rules in legacy", `
			iptables-legacy -t nat -N DOCKER
			iptables-legacy -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
			iptables-legacy -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
			iptables-legacy -P FORWARD DROP; fill legacy 20`},
		{"Docker's rules in nft", `
			iptables-nft -t nat -N DOCKER
			iptables-nft -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
			iptables-nft -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
			iptables-nft -P FORWARD DROP; fill nft 20`},
		{"Docker's rules in nft, 30 bans of a container in legacy", `
			iptables-nft-restore <docker-26.1.save; ip6tables-nft-restore <docker-26.1.save6
			fill legacy 31`},
		{"Docker's rules in legacy, 30 bans of a container in nft", `
			iptables-legacy-restore <docker-26.1.save; ip6tables-legacy-restore <docker-26.1.save6
			fill nft 31`},
		{"ufw's rules in legacy, 500 rules of a container in nft", `
			iptables-legacy-restore <ufw-0.36.save; ip6tables-legacy-restore <ufw-0.36.save6; fill nft 500`},
		{"libvirt's rules in nft, 100 rules of a container in legacy", `
			iptables-nft-restore <libvirt-11.3.save; ip6tables-nft-restore <libvirt-11.3.save6; fill legacy 100`},
		{"Podman's rules in legacy, 100 rules of a container in nft", `
			iptables-legacy-restore <podman-netavark-1.4.save; fill nft 100`},
		{"the CNI plugins' rules in nft, 100 rules of a container in legacy", `
			iptables-nft-restore <cni-plugins-1.1.save; fill legacy 100`},
		{"a firewall in legacy, beside firewalld's native table", `
			nft -f firewalld.nft; fill legacy 3; iptables-legacy -P FORWARD DROP`},
		{"Docker's rules in legacy, beside firewalld's native table", `
			nft -f firewalld.nft; iptables-legacy-restore <docker-26.1.save`},
		{"kube-proxy's native table, 50 rules in legacy", `nft add table ip kube-proxy; fill legacy 50`},
		{"three empty chains in legacy, a rule in nft",
			`for n in A B C; do iptables-legacy -N $n; done; fill nft 1 ip6`},
		{"Docker's rules in nft, kubelet's hint in legacy", `
			iptables-nft-restore <docker-26.1.save; hint legacy ip`},
		{"a native firewall in nft, a rule in legacy", `
			nft add table inet firewall; nft add chain inet firewall input '{ type filter hook input priority 0; }'
			for n in 1 2 3; do nft add rule inet firewall input ip saddr 192.0.2.10$n accept; done; fill legacy 1`},
		{"hint in nft behind a rule that iptables-nft cannot decode, stale canary in legacy", `
			hint nft ip; nft add rule ip mangle KUBE-IPTABLES-HINT meta mark set numgen inc mod 2; canary legacy ip`},
		{"a rule of 8 KiB in nft before 20 others, 15 in legacy", `
			u32='-m u32 --u32 0&0xFF=1'; iptables-nft -N X; iptables-nft -A X $u32 $u32 $u32 $u32 -j ACCEPT
			fill nft 20; fill legacy 15`},
		{"5,000 rules in nft, 5,001 in legacy", `fill nft 5000; fill legacy 5001`},
	} {
		list = append(list, decided("host", h.name, h.script))
	}
	list = append(list, situation{
		group: "host", name: "a native table ip filter with three rules, two rules in legacy", want: "nft",
		// iptables-nft can do nothing with such a table, so what counts is not the client's rule but the answer.
		script: `nft add table ip filter; nft add chain ip filter input '{ type filter hook input priority 0; }'
			for n in 1 2 3; do nft add rule ip filter input ip saddr 192.0.2.10$n accept; done; fill legacy 2
			backend iptables`,
	}, situation{
		group: "host", name: "a kernel without nf_tables", want: "legacy",
		script: `"$SUITE" -without-nftables iptables -A INPUT -s 192.0.2.1 -j ACCEPT || echo "status $?"
			where 192.0.2.1`,
	})
	return list
}

// realNodes is the same with the rules of real nodes, each in both backends.
func realNodes() []situation {
	var list []situation
	for _, n := range []struct{ name, file string }{
		{"kind node", "kind-node"}, {"NodePort of 2019", "nodeport-2019"}, {"kube-dns of 2018", "kube-dns-2018"},
		{"three endpoints", "three-endpoints"}, {"kube-proxy in ipvs mode", "ipvs-mode"},
	} {
		for _, backend := range []string{"legacy", "nft"} {
			list = append(list, decided("node", n.name+", "+backend,
				`ipset restore -file ipvs-mode.ipset; iptables-`+backend+`-restore <`+n.file+`.save`))
		}
	}
	return list
}

// rights is what callers with fewer of them get, and what becomes of the next one.
func rights() []situation {
	return []situation{
		{
			group: "rights", name: "hint in legacy, a caller without CAP_NET_ADMIN, then one that has it",
			want:   "legacy",
			script: `hint legacy ip; try capsh --drop=cap_net_admin -- -c 'iptables --version'; client`,
		}, {
			group: "rights", name: "hint in legacy, a user without rights, then root", want: "legacy",
			script: `hint legacy ip; try setpriv --reuid=65534 --regid=65534 --clear-groups iptables --version; client`,
		}, {
			group: "rights", name: "hint in nft, a user with CAP_NET_ADMIN and CAP_NET_RAW", want: "nft",
			script: `hint nft ip6; user iptables -A INPUT -s 192.0.2.1 -j ACCEPT; where 192.0.2.1`,
		}, {
			group: "rights", name: "no_new_privs and no capability but CAP_NET_ADMIN and CAP_NET_RAW, hint in legacy",
			want: "legacy",
			script: `hint legacy ip
				call setpriv --no-new-privs --bounding-set=-all,+net_admin,+net_raw --inh-caps=-all \
					iptables -A INPUT -s 192.0.2.1 -j ACCEPT
				where 192.0.2.1`,
		},
	}
}

// endless is how a call ends that could run itself without end.
const endless = `
	try timeout -s KILL 5 iptables -S
	case $status in
	137) echo "it does not end" ;;
	0|1) echo "it ends with $status" ;;
	*) echo "it ends, with neither 0 nor 1" ;;
	esac`

// programs is what a call gets that cannot be served.
func programs() []situation {
	const gone = "status 127, says why, nowhere"
	return []situation{
		{
			group: "program", name: "hint in legacy, legacy program missing", want: gone,
			script: `hint legacy ip; rm /usr/sbin/xtables-legacy-multi; refused iptables -A INPUT -s 192.0.2.1 -j ACCEPT
				where 192.0.2.1`,
		}, {
			group: "program", name: "hint in nft, nft program missing", want: gone,
			script: `hint nft ip; rm /usr/sbin/xtables-nft-multi; refused iptables -A INPUT -s 192.0.2.1 -j ACCEPT
				where 192.0.2.1`,
		}, {
			group: "program", name: "rules in legacy, legacy program cannot be executed",
			want: "status 126, says why, nowhere",
			script: `fill legacy 3; chmod 644 /usr/sbin/xtables-legacy-multi
				refused iptables -A INPUT -s 192.0.2.1 -j ACCEPT; where 192.0.2.1`,
		}, {
			group: "program", name: "it is a link to the wrapper itself", want: "it ends, with neither 0 nor 1",
			script: `hint nft ip; wrapper=$(readlink -f /usr/sbin/iptables)
				for n in xtables-nft-multi iptables-nft; do
					rm -f /usr/sbin/$n
					ln -s "$wrapper" /usr/sbin/$n
				done` + endless,
		}, {
			group: "program", name: "it is another copy of the wrapper", want: "it ends, with neither 0 nor 1",
			script: `hint nft ip; cp "$(readlink -f /usr/sbin/iptables)" copy
				for n in xtables-nft-multi iptables-nft; do rm /usr/sbin/$n; cp copy /usr/sbin/$n; done` + endless,
		}, {
			group: "program", name: "the wrapper called by the name of its file", want: "it ends",
			script: `try timeout -s KILL 5 "$(readlink -f /usr/sbin/iptables)" -L
				if [ "$status" = 137 ]; then echo "it does not end"; else echo "it ends"; fi`,
		},
	}
}

// places are directories that a call comes from and goes to.
func places() []situation {
	return []situation{
		{
			group: "place", name: "called by full path, from another directory, with an empty PATH", want: "legacy",
			script: `hint legacy ip; cd /usr/share; call env PATH= /usr/sbin/iptables -A INPUT -s 192.0.2.1 -j ACCEPT
				where 192.0.2.1`,
		}, {
			group: "place", name: "called by a relative path", want: "legacy",
			script: `hint legacy ip; cd /usr/sbin; call ./iptables -A INPUT -s 192.0.2.1 -j ACCEPT; where 192.0.2.1`,
		}, {
			group: "place", name: "called through a link in another directory", want: "legacy",
			script: `hint legacy ip; ln -s /usr/sbin/iptables iptables
				call "$TMP/iptables" -A INPUT -s 192.0.2.1 -j ACCEPT; where 192.0.2.1`,
		}, {
			group: "place", name: "a program of that name in PATH and in the working directory", want: "legacy",
			script: `hint legacy ip
				for n in iptables iptables-legacy xtables-legacy-multi; do
					printf '#!/bin/sh\necho trapped >&2\n' >$n
					chmod +x $n
				done
				call env PATH=.:$TMP:$PLAIN /usr/sbin/iptables -A INPUT -s 192.0.2.1 -j ACCEPT; where 192.0.2.1`,
		}, {
			group: "place", name: "another network namespace, hint there in legacy and here in nft",
			want: "legacy, nft",
			script: `ip netns add pod; ip netns exec pod iptables-legacy -t mangle -N KUBE-IPTABLES-HINT; hint nft ip
				call ip netns exec pod iptables --version; ran; client`,
		}, {
			group: "place", name: "another network namespace, by a caller that may not look at process 1",
			want: "legacy, nft",
			script: `ip netns add pod; ip netns exec pod iptables-legacy -t mangle -N KUBE-IPTABLES-HINT; hint nft ip
				call ip netns exec pod setpriv --bounding-set=-sys_ptrace --inh-caps=-all iptables --version; ran
				client`,
		}, {
			group: "place", name: "an image build: called on an empty host, then on a legacy host", want: "nft, legacy",
			script: `backend iptables; hint legacy ip; client`,
		}, {
			group: "place", name: "no trace: looking registers no table and makes none", want: "the same",
			script: `snapshot() {
					cat /proc/net/ip_tables_names /proc/net/ip6_tables_names
					nft list ruleset
					cat /proc/modules 2>&1 || :
				}
				fill legacy 1 ip6; hint nft ip
				snapshot >before; call iptables --version; call ip6tables --version; snapshot >after
				if cmp -s before after; then echo "the same"; else diff before after || :; fi`,
		}, {
			group: "place", name: "no trace on an empty host", want: "the same",
			script: `snapshot() { cat /proc/net/ip_tables_names /proc/net/ip6_tables_names; nft list ruleset; }
				snapshot >before; call iptables --version; call ip6tables-restore --version; snapshot >after
				if cmp -s before after; then echo "the same"; else diff before after || :; fi`,
		},
	}
}
