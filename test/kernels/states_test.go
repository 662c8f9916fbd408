// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

// state is how a kernel is when the first call comes, and what must come of it.
type state struct {
	name   string   // for -case
	is     string   // in docs/kernels.md
	remove []string // modules that it does not have
	load   []string // modules that it has already
	netns  bool     // in another network namespace than the modules were loaded in
	locked bool     // no module can be loaded any more
	append string   // on its command line
}

var (
	nfTables = []string{"nf_tables"}
	legacyV4 = []string{"ip_tables", "iptable_*"}
	legacyV6 = []string{"ip6_tables", "ip6table_*"}
)

var states = []state{
	{name: "as-is", is: "as it is"},
	{name: "nft-removed", is: "no nf_tables", remove: nfTables},
}
