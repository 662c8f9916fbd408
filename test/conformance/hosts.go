// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

func situations() []situation {
	return slices.Concat(hosts(), input(), transparency(), signals(), inheritance(), steady(), races())
}

// hosts is which backend the client's first rules go to, on hosts of every kind. The oracle decides. It states every
// combination in detect/oracle_test.go; here are those in which wrappers differ.
func hosts() []situation {
	var list []situation
	for _, h := range []struct{ name, script string }{
		{"nothing", ``},
		{"hint in legacy", `hint legacy ip`},
		{"hint in legacy, IPv6", `hint legacy ip6`},
		{"hint in nft", `hint nft ip`},
		{"hint in nft, rules in legacy", `hint nft ip; fill legacy 50`},
		{"hints in both", `hint nft ip; hint legacy ip; fill legacy 5`},
		{"hint in legacy, stale canary in nft", `hint legacy ip; canary nft ip`},
		{"canary in legacy, IPv6, rules in nft", `canary legacy ip6; fill nft 5`},
		{"chains named almost like the hint, rules in legacy",
			`iptables-nft -t mangle -N KUBE-IPTABLES-HINT-OLD; iptables-nft -t mangle -N XKUBE-IPTABLES-HINT
				fill legacy 1`},
		{"hint in another table, rules in the other backend",
			`iptables-legacy -N KUBE-IPTABLES-HINT; ip6tables-legacy -t nat -N KUBE-KUBELET-CANARY; fill nft 1`},
		{"hint in a native table, rules in legacy",
			`nft add table inet mangle; nft add chain inet mangle KUBE-IPTABLES-HINT; fill legacy 1`},
		{"one rule in legacy, IPv6", `ip6tables-legacy -t nat -A OUTPUT -j ACCEPT`},
		{"more rules in nft", `fill legacy 9; fill nft 5; fill nft 5 ip6`},
		{"as many rules in both", `fill legacy 3; fill nft 3`},
		{"chains and policies in nft, a rule in legacy",
			`iptables-nft -P FORWARD DROP; for n in A B C; do iptables-nft -N $n; done; fill legacy 1`},
		{"a node of kind in legacy", `iptables-legacy-restore <kind-node.save`},
		{"Docker's rules in legacy, 30 bans of a container in nft", `
			iptables-legacy-restore <docker-26.1.save; ip6tables-legacy-restore <docker-26.1.save6
			fill nft 31`},
		{"a firewall in legacy, beside firewalld's native table", `
			nft -f firewalld.nft; fill legacy 3; iptables-legacy -P FORWARD DROP`},
		{"kube-proxy's native table, 50 rules in legacy", `nft add table ip kube-proxy; fill legacy 50`},
		{"hint in nft behind a rule that iptables-nft cannot decode, stale canary in legacy", `
			hint nft ip; nft add rule ip mangle KUBE-IPTABLES-HINT meta mark set numgen inc mod 2; canary legacy ip`},
		{"5,000 rules in nft, 5,001 in legacy", `fill nft 5000; fill legacy 5001`},
	} {
		list = append(list, decided(h.name, h.script))
	}
	return append(list, situation{
		group: "host", name: "a kernel without nf_tables", want: "legacy",
		script: `"$SUITE" -without-nftables iptables -A INPUT -s 192.0.2.1 -j ACCEPT || echo "status $?"
			where 192.0.2.1`,
	})
}
