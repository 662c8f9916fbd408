// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "slices"

// hostPrograms are the names that only programs of the host make: a chain with its table, or a native table with its
// family, as nft prints them.
var hostPrograms = []string{
	"filter DOCKER-USER", "ip docker-bridges", "ip6 docker-bridges",
	"filter ufw-user-input", "filter ufw6-user-input",
	"filter LIBVIRT_INP", "ip libvirt_network", "ip6 libvirt_network",
	"filter NETAVARK_FORWARD", "inet netavark",
	"filter CNI-FORWARD", "nat CNI-HOSTPORT-DNAT", "ip cni_hostport", "ip6 cni_hostport",
	"filter INPUT_direct", "inet firewalld",
	"nat CRIO-HOSTPORTS-MASQ", "ip crio-hostports", "ip6 crio-hostports",
	"ip kube-proxy", "ip6 kube-proxy",
	"ip io.systemd.nat", "ip6 io.systemd.nat",
}

// See tells the oracle of something that is in a backend: a chain of one of iptables' tables, "mangle X", or a native
// table, "inet x", which is in both families. What is no name tells it nothing.
func (b *Backend) See(name string, inFamilies ...int) {
	kind := -1
	switch {
	case name == "mangle KUBE-IPTABLES-HINT":
		kind = Hint
	case name == "mangle KUBE-KUBELET-CANARY":
		kind = Canary
	case slices.Contains(hostPrograms, name):
		kind = Program
	default:
		return
	}
	for _, family := range inFamilies {
		b.Names[kind][family] = Yes
	}
}
