// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package iptables

import (
	"fmt"
	"slices"
)

// Release is a version of iptables. The zero Release means that the version is not known.
type Release [3]int

// Faithful is the first release that reads every rule of later ones. An older iptables-nft drops the matches that it
// does not know when it reads a rule, and writes the rule back without them (kubernetes/kubernetes#112477,
// cloudnativelabs/kube-router#1370).
var Faithful = Release{1, 8, 8}

// ParseRelease parses a line such as "iptables v1.8.9 (nf_tables)". For any other line it returns the zero Release.
func ParseRelease(line string) Release {
	var r Release
	_, err := fmt.Sscanf(line, "iptables v%d.%d.%d", &r[0], &r[1], &r[2])
	if err != nil {
		return Release{}
	}
	return r
}

// Known reports whether r is a known version.
func (r Release) Known() bool { return r != Release{} }

// LosesRules reports whether r is known to be older than Faithful.
func (r Release) LosesRules() bool { return r.Known() && slices.Compare(r[:], Faithful[:]) < 0 }

// String returns the release in the form "1.8.9".
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }
