// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

var leftoverSituations = []situation{
	{
		"iptables and ip6tables differ, for an older kubelet",
		func(r *Report) {
			r.Host.Evidence[2].Hint = detect.No
			r.Host.Evidence[1].Canary, r.Host.Evidence[2].Canary = detect.Yes, detect.Yes
		},
		[]string{"problem families-differ, node -> the host uses legacy for IPv4 and nft for IPv6"},
	},
	{
		"a canary that is left over for the other family",
		func(r *Report) {
			r.Host.Evidence[1].Canary = detect.Yes
			r.Host.Evidence[1].Tables = []detect.Table{{Name: "mangle", Chains: []string{detect.CanaryChain}}}
		},
		[]string{"warning chains-in-both, container -> as happens after switching backends, these " +
			"chains in nft are left over: KUBE-KUBELET-CANARY (ipv6 mangle)"},
	},
	{
		"programs of the host in both, and rules that iptables-nft cannot list",
		func(r *Report) {
			r.Host.Conflicts = []detect.Conflict{detect.HostProgramsInBoth}
			r.Host.Evidence[1].Programs = []detect.Program{{Name: "Docker", Table: "filter", Chain: "DOCKER-USER"}}
			r.Host.Evidence[1].Foreign = []detect.Chain{{Table: "filter", Name: "DOCKER-USER"}}
			r.Host.Evidence[3].Programs = []detect.Program{{Name: "ufw", Table: "filter", Chain: "ufw6-user-input"}}
		},
		[]string{"warning host-programs-in-both, node -> :\nnft list table ip6 filter\n" +
			"ip6tables-legacy-save -t filter"},
	},
	{
		"rules in the other backend, and a rule of nft beside them",
		func(r *Report) {
			rules(0, 52)(r)
			r.Host.Evidence[0].Tables[0].Rules.Min = 0
			r.Host.Evidence[0].Foreign = []detect.Chain{{Table: "nat", Name: "POSTROUTING"}}
			rules(1, 3)(r)
		},
		[]string{"warning rules-in-both, node -> rules too: at most 52 rules in nft ipv4 nat, 3 in nft ipv6 nat. " +
			"They are active, but iptables here does not list themif the program that made them still runs, " +
			"have it use legacy; if not, remove them. To see them:\nip6tables-nft-save\nnft list ruleset"},
	},
	{
		"a chain of nft in a table of the other backend, without rules",
		func(r *Report) {
			rules(0, 0)(r)
			r.Host.Evidence[0].Foreign = []detect.Chain{{Table: "nat", Name: "mine"}}
		},
		[]string{`warning rules-in-both, node -> rules too: chain "mine", which is not iptables' own, in nft ipv4 nat`},
	},
	{
		"a table of the other backend that could not be counted",
		func(r *Report) {
			rules(0, 0)(r)
			r.Host.Evidence[0].Tables[0].Rules.Max = detect.Unbounded
			r.Host.Evidence[0].Foreign = []detect.Chain{{Table: "filter", Name: "mine"}}
		},
		nil,
	},
	{"native nft tables, and a memory of a guess", func(r *Report) {
		unknown(r)
		r.Host.Evidence[0].Foreign = []detect.Chain{{Table: "filter", Name: "mine"}}
		r.Host.Reason, r.Here.How = detect.Remembered, here.Remembered
	}, []string{`problem foreign-chain, node -> table "filter" (ipv4) has chain "mine", which is not iptables' own`}},
}
