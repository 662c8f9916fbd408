// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

// steady is whether a container keeps its backend from its first call to its end, and follows a marker all the same.
// What else can happen to a container of this project's wrapper, test/histories plays.
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
		{"a guess adds a rule, the other backend gets rules, -D of that rule", "nft, nowhere", `
			add 192.0.2.7; where 192.0.2.7; fill legacy 6; call iptables -D INPUT -s 192.0.2.7 -j ACCEPT
			where 192.0.2.7`},
		{"a guess adds a rule, then kubelet's hint appears in the other backend", "nft, legacy", `
			add 192.0.2.7; where 192.0.2.7; hint legacy ip; client`},
		{"root adds a rule and flushes, then another user adds one", "legacy", `
			fill legacy 3; add 192.0.2.7; call iptables -F; user iptables -A INPUT -s 192.0.2.8 -j ACCEPT
			where 192.0.2.8`},
	} {
		list = append(list,
			situation{group: "steady", name: s.name, want: s.want, script: s.script},
			situation{group: "steady, read-only root", name: s.name, want: s.want, script: "read_only\n" + s.script})
	}
	return list
}
