// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// healthy is a container on a legacy host in which nothing is wrong.
func healthy() Report {
	return Report{
		Host: detect.Result{
			Mode: detect.Legacy, Reason: detect.KubeletHint, Conclusive: true,
			Evidence: []detect.Evidence{
				{Backend: detect.NFT, Family: detect.IPv4, Supported: detect.Yes},
				{Backend: detect.NFT, Family: detect.IPv6, Supported: detect.Yes},
				{Backend: detect.Legacy, Family: detect.IPv4, Supported: detect.Yes, Hint: detect.Yes},
				{Backend: detect.Legacy, Family: detect.IPv6, Supported: detect.Yes},
			},
		},
		Here:         here.Here{Backend: detect.Legacy, Program: "/p/xtables-legacy-multi", How: here.EachCall},
		Network:      here.Network{Namespace: "net:[1]", Interfaces: []string{"lo", "ens3"}, Process1: detect.Yes},
		Capabilities: []string{netAdmin, netRaw},
		Programs: []Program{
			{Mode: detect.NFT, Path: "/p/xtables-nft-multi", Version: "iptables v1.8.9 (nf_tables)"},
			{Mode: detect.Legacy, Path: "/p/xtables-legacy-multi", Version: "iptables v1.8.9 (legacy)"},
		},
		Names: []layout.Status{
			{Name: "iptables", ResolvesTo: "/p/iptables-wrapper", Wrapper: true},
			{Name: "ip6tables", ResolvesTo: "/p/iptables-wrapper", Wrapper: true},
		},
		canLoad: true,
	}
}

// unknown turns the host into one that shows nothing.
func unknown(r *Report) {
	r.Host.Mode, r.Host.Reason, r.Host.Conclusive = detect.NFT, detect.Default, false
	r.Host.Evidence[2].Hint = detect.No
	r.Here = here.Here{Backend: detect.NFT, Program: "/p/xtables-nft-multi", How: here.EachCall}
}

// nftHost turns the host into one that uses nft.
func nftHost(r *Report) {
	unknown(r)
	r.Host.Reason, r.Host.Conclusive = detect.KubeletHint, true
	r.Host.Evidence[0].Hint = detect.Yes
}

func unknownBecause(backend int, err error) func(*Report) {
	return func(r *Report) {
		unknown(r)
		r.Host.Evidence[backend].Err = err
	}
}

// wrong has iptables here run nft, on a legacy host.
func wrong(how string) func(*Report) {
	return func(r *Report) {
		r.Here = here.Here{Backend: detect.NFT, Program: "/p/xtables-nft-multi", How: how, Differs: true}
	}
}

func rules(backend, n int, chains ...string) func(*Report) {
	return func(r *Report) {
		table := detect.Table{Name: "nat", Rules: detect.Count{Min: n, Max: n}, Chains: chains}
		r.Host.Evidence[backend].Tables = []detect.Table{table}
	}
}

type situation struct {
	doc  string
	make func(*Report)
	want []string
}

// situations has what can be wrong, and what must be found: for each finding, its severity, a part of its text, and a
// part of its fix.
var situations = slices.Concat(backendSituations, programSituations, bypassSituations, leftoverSituations,
	otherSituations)
