// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
)

// versionNumber is a version of iptables. The zero versionNumber means that the version is not known.
type versionNumber [3]int

// firstFaithful is the first version that reads every rule of later ones. An older iptables-nft drops the matches that
// it does not know when it reads a rule, and writes the rule back without them (kubernetes/kubernetes#112477,
// cloudnativelabs/kube-router#1370).
var firstFaithful = versionNumber{1, 8, 8}

// parseVersion parses a line such as "iptables v1.8.9 (nf_tables)". For any other line it returns the zero
// versionNumber.
func parseVersion(line string) versionNumber {
	var r versionNumber
	_, err := fmt.Sscanf(line, "iptables v%d.%d.%d", &r[0], &r[1], &r[2])
	if err != nil {
		return versionNumber{}
	}
	return r
}

// known reports whether r is a known version.
func (r versionNumber) known() bool { return r != versionNumber{} }

// losesRules reports whether r is known to be older than firstFaithful.
func (r versionNumber) losesRules() bool {
	return r.known() && slices.Compare(r[:], firstFaithful[:]) < 0
}

// String returns the version in the form "1.8.9".
func (r versionNumber) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }
