// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Extension is a match or a target of iptables: "conntrack", "MASQUERADE".
type Extension struct {
	Name   string `json:"name"`
	Target bool   `json:"target"`
}

// Support says whether the running kernel has an extension for a family. iptables-legacy and iptables-nft use the
// same ones.
type Support struct {
	Family Family `json:"family"`
	Extension

	// Has is Unknown where the extension is not loaded and a module may bring it: finding out would load it. It is also
	// Unknown where the lists of what is loaded cannot be read, as before the first use of iptables-legacy.
	Has Answer `json:"has"`
	Err error  `json:"-"` // why the lists cannot be read
}

// Extensions looks for extensions in the kernel's lists of those that are loaded. It loads nothing and needs no
// capability, but the lists are readable by root and group 0 only.
func Extensions(wanted []Extension) []Support {
	all := make([]Support, 0, len(families)*len(wanted))
	for _, family := range families {
		for _, x := range wanted {
			all = append(all, Support{Family: family, Extension: x})
		}
	}
	askExtensions(all)
	return all
}
