// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Extension is a match or a target of iptables: "conntrack", "MASQUERADE".
type Extension struct {
	Name   string `json:"name"`
	Target bool   `json:"target"`
}

// Support says whether the running kernel has an extension for a backend and family.
type Support struct {
	Backend Mode   `json:"backend"`
	Family  Family `json:"family"`
	Extension
	Has Answer `json:"has"` // for legacy, Unknown also where x_tables is not loaded but a module may provide it
	Err error  `json:"-"`   // why it is not known
}

// Extensions asks the kernel for each extension, as iptables asks before it uses one: legacy by getsockopt(2), nft by the
// question that nft_compat answers. No rule is created, but unlike with all else in this package, the kernel may load the
// modules of what it is asked for, in both backends. It needs CAP_NET_ADMIN.
func Extensions(wanted []Extension) []Support {
	all := make([]Support, 0, 4*len(wanted))
	for _, e := range unasked() {
		for _, x := range wanted {
			all = append(all, Support{Backend: e.Backend, Family: e.Family, Extension: x})
		}
	}
	askExtensions(all)
	return all
}
