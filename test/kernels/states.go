// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import "slices"

// state is how a kernel is when the first call comes.
type state struct {
	name     string   // for -case
	is       string   // in docs/evidence/compatibility.md
	remove   []string // modules that it does not have
	outside  string   // a shell command that loads modules, outside the container
	inside   string   // the same, inside
	locked   bool     // no module can be loaded any more
	readOnly bool     // nothing can be recorded
	want     want
}

// want is the expected outcome: what the decision table and iptables itself make of this state, not what was found.
type want struct {
	kernel  [2]string // by detect, in the beginning: nf_tables, x_tables
	detects string    // backend and reason that detect prints: a guess, as there is no name yet. A call runs the same
	direct  string    // the backends whose own program takes the realistic rules
	hints   string    // the backends that kubelet can leave its hint in; each is certain
	doctor  string    // a finding's severity, and what is missing in this kernel. "": not asked, as that takes long
}

const (
	yes = "yes"
	no  = "no"
)

var (
	nfTables = []string{"nf_tables"}
	legacyV4 = []string{"ip_tables", "iptable_*"}
	legacyV6 = []string{"ip6_tables", "ip6table_*"}

	onlyNFT = [2]string{yes, no} // x_tables is loaded by iptables-legacy's first call
	nothing = [2]string{no, no}
)

// groups are the states that one boot goes through. Each state finds the kernel as it is after booting: in a group,
// one that cannot be undone comes last.
var groups = []group{
	{append: "", states: []state{
		{
			name: "as-is", is: "as it is, modules loaded on demand",
			want: want{onlyNFT, "nft default", "nft legacy", "nft legacy", ""},
		},
		{
			name: "nft-chain-nat-removed", is: "no nft_chain_nat", remove: []string{"nft_chain_nat"},
			want: want{onlyNFT, "legacy only-supported", "legacy", "nft legacy", ""},
		},
		{
			name: "nft-removed", is: "no nf_tables", remove: nfTables,
			want: want{nothing, "legacy only-supported", "legacy", "legacy", ""},
		},
		{
			name: "legacy-removed", is: "no legacy", remove: slices.Concat(legacyV4, legacyV6),
			want: want{onlyNFT, "nft only-supported", "nft", "nft", ""},
		},
		{
			name: "legacy-ipv4", is: "legacy for IPv4 only", remove: legacyV6,
			want: want{onlyNFT, "nft default", "nft legacy", "nft legacy", ""},
		},
		{
			name: "locked", is: "modules locked after boot", locked: true,
			want: want{nothing, "legacy only-supported", "", "", "problem: kernel"},
		},
	}},
	{append: "", states: []state{
		{
			// iptables-nft needs it for every match and target that it has no expression of its own for.
			name: "nft-compat-removed", is: "no nft_compat", remove: []string{"nft_compat"},
			want: want{onlyNFT, "legacy only-supported", "legacy", "nft legacy", ""},
		},
		{
			name: "conntrack-removed", is: "no nf_conntrack and no nf_nat", remove: []string{"nf_conntrack", "nf_nat"},
			want: want{onlyNFT, "legacy only-supported", "", "nft legacy", ""},
		},
		{
			name: "comment-removed", is: "no xt_comment", remove: []string{"xt_comment"},
			want: want{onlyNFT, "legacy only-supported", "", "nft legacy", ""},
		},
		{
			// iptables-nft needs nothing for the match mark, but the same module has the target.
			name: "owner-removed", is: "no xt_owner and no xt_mark", remove: []string{"xt_owner", "xt_mark"},
			want: want{onlyNFT, "nft default", "nft legacy", "nft legacy", ""},
		},
		{
			name: "read-only", is: "as it is, and a read-only /dev", readOnly: true,
			want: want{onlyNFT, "nft default", "nft legacy", "nft legacy", ""},
		},
		{
			name: "locked-nft", is: "modules locked, nf_tables loaded", locked: true,
			inside: "unshare --net sh -c '" + directScript + "' iptables-nft",
			want:   want{onlyNFT, "nft default", "nft", "nft", ""},
		},
	}},
	{append: "", states: []state{
		{
			name: "neither", is: "neither backend", remove: slices.Concat(nfTables, legacyV4, legacyV6),
			want: want{nothing, "legacy only-supported", "", "", "problem: kernel"},
		},
		{
			// RHEL 10 without kernel-modules-extra
			name: "no-extra", is: "no nft_compat, and no legacy",
			remove: slices.Concat([]string{"nft_compat"}, legacyV4, legacyV6),
			want:   want{onlyNFT, "nft only-supported", "", "nft", "problem: kernel-modules-extra"},
		},
		{
			name: "no-table", is: "legacy loaded, no table registered",
			outside: "modprobe -a iptable_filter iptable_mangle ip6table_filter ip6table_mangle",
			want:    want{[2]string{yes, yes}, "nft default", "nft legacy", "nft legacy", ""},
		},
		{
			name: "locked-legacy", is: "modules locked, IPv4 legacy loaded", locked: true,
			inside: "unshare --net sh -c '" + directScript + "' iptables-legacy; modprobe iptable_mangle",
			want:   want{[2]string{no, yes}, "legacy only-supported", "legacy", "legacy", ""},
		},
	}},
	{append: "ipv6.disable=1", states: []state{
		{
			name: "no-ipv6", is: "no IPv6",
			want: want{onlyNFT, "nft default", "nft legacy", "nft legacy", ""},
		},
	}},
}

// group is what one boot goes through.
type group struct {
	append string // to its command line
	states []state
}

func find(name string) (state, bool) {
	for _, g := range groups {
		for _, s := range g.states {
			if s.name == name {
				return s, true
			}
		}
	}
	return state{}, false
}
