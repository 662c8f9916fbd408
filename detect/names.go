// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"iter"
	"strings"
)

// Kubelet makes these chains in table mangle of its backend, before it starts its first Pod
// (pkg/kubelet/kubelet_network_linux.go in kubernetes/kubernetes).
const (
	hintChain   = "KUBE-IPTABLES-HINT"
	canaryChain = "KUBE-KUBELET-CANARY"
)

// knownNames are the names that only kubelet and other programs of the host make. The list leaves out the chains of
// programs that run in containers with their own iptables, because the image may have chosen the backend: kube-proxy
// (KUBE-SERVICES), Calico (cali-), Tailscale (ts-), fail2ban (f2b-) and meshes.
//
// A chain is made by the host's iptables, in the backend that the host uses, for IPv4 or IPv6. A native table proves
// that the host uses nf_tables, whatever iptables is in an image.
//
// To add a name, add a line here, a dump of the program in test/rules/programs, and a line in docs/how-it-works.md.
var knownNames = [...]Name{
	{Program: "kubelet", Table: "mangle", Chain: hintChain},
	{Program: "kubelet", Table: "mangle", Chain: canaryChain},

	// Docker since 17.06; daemon/libnetwork/firewall_linux.go in moby/moby.
	{Program: "Docker", Table: "filter", Chain: "DOCKER-USER"},
	// ufw; src/backend_iptables.py.
	{Program: "ufw", Table: "filter", Chain: "ufw-user-input"},
	{Program: "ufw", Table: "filter", Chain: "ufw6-user-input"},
	// libvirt since 5.1, for its virtual networks; src/network/network_iptables.c.
	{Program: "libvirt", Table: "filter", Chain: "LIBVIRT_INP"},
	// Podman with netavark; src/firewall/varktables/types.rs in containers/netavark.
	{Program: "Podman", Table: "filter", Chain: "NETAVARK_FORWARD"},
	// The CNI plugin firewall; plugins/meta/firewall/iptables.go in containernetworking/plugins.
	{Program: "CNI's firewall plugin", Table: "filter", Chain: "CNI-FORWARD"},
	// firewalld with FirewallBackend=iptables; src/firewall/core/ipXtables.py.
	{Program: "firewalld", Table: "filter", Chain: "INPUT_direct"},
	// The CNI plugin portmap; plugins/meta/portmap/portmap_iptables.go in containernetworking/plugins.
	{Program: "CNI's portmap plugin", Table: "nat", Chain: "CNI-HOSTPORT-DNAT"},
	// CRI-O, for the ports of pods; internal/hostport/hostport_iptables.go in cri-o/cri-o.
	{Program: "CRI-O", Table: "nat", Chain: "CRIO-HOSTPORTS-MASQ"},

	// src/firewall/core/nftables.py.
	{Program: "firewalld", Table: "inet firewalld"},
	// Docker since 29, with --firewall-backend=nftables; daemon/libnetwork/drivers/bridge/internal/nftabler in
	// moby/moby.
	{Program: "Docker", Table: "ip docker-bridges"},
	{Program: "Docker", Table: "ip6 docker-bridges"},
	// Podman with netavark since 1.10; src/firewall/nft.rs in containers/netavark.
	{Program: "Podman", Table: "inet netavark"},
	// kube-proxy in nftables mode, which does not depend on the iptables in its image; pkg/proxy/nftables/proxier.go
	// in kubernetes/kubernetes.
	{Program: "kube-proxy", Table: "ip kube-proxy"},
	{Program: "kube-proxy", Table: "ip6 kube-proxy"},
	// libvirt since 10.4; src/network/network_nftables.c.
	{Program: "libvirt", Table: "ip libvirt_network"},
	{Program: "libvirt", Table: "ip6 libvirt_network"},
	// The CNI plugin portmap since 1.6; plugins/meta/portmap/portmap_nftables.go in containernetworking/plugins.
	{Program: "CNI's portmap plugin", Table: "ip cni_hostport"},
	{Program: "CNI's portmap plugin", Table: "ip6 cni_hostport"},
	// CRI-O; internal/hostport/hostport_nftables.go in cri-o/cri-o.
	{Program: "CRI-O", Table: "ip crio-hostports"},
	{Program: "CRI-O", Table: "ip6 crio-hostports"},
	// systemd-networkd and systemd-nspawn since systemd 248; src/shared/firewall-util-nft.c.
	{Program: "systemd", Table: "ip io.systemd.nat"},
	{Program: "systemd", Table: "ip6 io.systemd.nat"},
}

// namesOf yields the names of a reason, those of IPv4 first.
func namesOf(r Reason) iter.Seq[Name] {
	return func(yield func(Name) bool) {
		for _, f := range families {
			for _, n := range &knownNames {
				n.Family = f
				if n.reason() == r && n.isPossible() && !yield(n) {
					return
				}
			}
		}
	}
}

func (n Name) reason() Reason {
	switch n.Chain {
	case hintChain:
		return KubeletHint
	case canaryChain:
		return KubeletCanary
	}
	return HostProgram
}

// isPossible reports whether a name can be in its family: a native table of ip or ip6 belongs to one family.
func (n Name) isPossible() bool {
	isBoth := n.Chain != "" || strings.HasPrefix(n.Table, "inet ")
	return isBoth || strings.HasPrefix(n.Table, "ip6 ") == (n.Family == IPv6)
}

// nftTable returns the table of a name as nft prints it: "ip filter".
func (n Name) nftTable() string {
	switch {
	case n.Chain == "":
		return n.Table
	case n.Family == IPv6:
		return "ip6 " + n.Table
	}
	return "ip " + n.Table
}
