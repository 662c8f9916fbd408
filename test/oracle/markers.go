// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

// See tells the oracle of something that is in a backend: a chain of one of iptables' tables, "mangle X", or a native
// table, "ip x". What is no marker tells it nothing.
func (b *Backend) See(name string, inFamilies ...int) {
	kind := -1
	switch {
	case name == "mangle KUBE-IPTABLES-HINT":
		kind = Hint
	case name == "mangle KUBE-KUBELET-CANARY":
		kind = Canary
	case slices.Contains(rules.Markers(), name):
		kind = Program
	default:
		return
	}
	for _, family := range inFamilies {
		b.Markers[kind][family] = Yes
	}
}
