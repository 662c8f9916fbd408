// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import "slices"

// state is how a kernel is when the first call comes.
type state struct {
	name   string   // for -case
	is     string   // in docs/kernels.md
	remove []string // modules that it does not have
	load   string   // a command, after which it has the modules that it loads
	netns  bool     // in another network namespace than the modules were loaded in
	locked bool     // no module can be loaded any more
	append string   // on its command line
	want   want
}

// want is what must come of it. It is what is right by the decision table and by what iptables can do there, not what
// was found.
type want struct {
	supported [4]string // nft IPv4, nft IPv6, legacy IPv4, legacy IPv6
	mode      string    // of the first call: a guess, as there is no evidence yet
	reason    string
	works     string // the backend that the first restore is in; afterwards it is conclusive. "": it fails
	says      string // in the one line on why detect is not conclusive
	hints     string // the backends that kubelet can leave its hint in; each is conclusive
	doctor    string // the gravest finding
}

const (
	yes = "yes"
	no  = "no"
	// A module may bring it, and asking for it would load it.
	perhaps = "could not tell"

	nothingFound = "nothing was found that tells the mode of this host"
	noNFTables   = "this kernel has no nf_tables, and x_tables are not there now"
	uncertain    = "warning: which backend the host uses is not certain: "
)

var (
	nfTables = []string{"nf_tables"}
	legacyV4 = []string{"ip_tables", "iptable_*"}
	legacyV6 = []string{"ip6_tables", "ip6table_*"}
)

var states = []state{
	{
		name: "as-is", is: "as it is, modules loaded on demand",
		want: want{[4]string{yes, yes, perhaps, perhaps}, "nft", "default", "nft", nothingFound, "nft legacy", uncertain + nothingFound},
	},
	{
		name: "nft-removed", is: "no nf_tables", remove: nfTables,
		want: want{[4]string{no, no, perhaps, perhaps}, "legacy", "only-supported", "legacy", noNFTables, "legacy", uncertain + noNFTables},
	},
	{
		name: "legacy-removed", is: "no legacy", remove: slices.Concat(legacyV4, legacyV6),
		want: want{[4]string{yes, yes, perhaps, perhaps}, "nft", "default", "nft", nothingFound, "nft", uncertain + nothingFound},
	},
	{
		name: "legacy-ipv4", is: "legacy for IPv4 only", remove: legacyV6,
		want: want{[4]string{yes, yes, perhaps, perhaps}, "nft", "default", "nft", nothingFound, "nft legacy", uncertain + nothingFound},
	},
	{
		// iptables-nft needs it for every match and target that it has no words of its own for.
		name: "nft-compat-removed", is: "nf_tables without nft_compat", remove: []string{"nft_compat"},
		want: want{[4]string{yes, yes, perhaps, perhaps}, "legacy", "only-supported", "legacy", nothingFound, "nft legacy", uncertain + nothingFound},
	},
	{
		name: "neither", is: "neither backend", remove: slices.Concat(nfTables, legacyV4, legacyV6),
		want: want{[4]string{no, no, perhaps, perhaps}, "legacy", "only-supported", "", noNFTables, "",
			"problem: this kernel has no legacy, and that is the mode"},
	},
	{
		name: "no-ipv6", is: "no IPv6", append: "ipv6.disable=1",
		want: want{[4]string{yes, yes, perhaps, perhaps}, "nft", "default", "nft", nothingFound, "nft legacy", uncertain + nothingFound},
	},
	{
		name: "locked", is: "modules locked after boot", locked: true,
		want: want{[4]string{no, no, no, no}, "nft", "default", "", "this kernel has neither", "",
			"problem: this kernel has no nft, and that is the mode"},
	},
	{
		name: "locked-nft", is: "modules locked, nf_tables loaded", locked: true,
		load: "iptables-nft -A INPUT -m comment --comment x -j DROP && nft flush ruleset",
		want: want{[4]string{yes, yes, no, no}, "nft", "only-supported", "nft", nothingFound, "nft", uncertain + nothingFound},
	},
	{
		name: "locked-legacy", is: "modules locked, IPv4 legacy loaded", load: "modprobe -a iptable_filter iptable_mangle xt_comment", locked: true,
		want: want{[4]string{no, no, yes, no}, "legacy", "only-supported", "legacy", nothingFound, "legacy", uncertain + nothingFound},
	},
	{
		name: "no-table", is: "legacy loaded, no table registered",
		load: "modprobe -a iptable_filter iptable_mangle ip6table_filter ip6table_mangle", netns: true,
		want: want{[4]string{yes, yes, yes, yes}, "nft", "default", "nft", nothingFound, "nft legacy", uncertain + nothingFound},
	},
}
