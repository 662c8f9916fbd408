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

// knownMarkers are those of kubelet and of other programs of the host. The list leaves out the chains of programs
// that run in containers with their own iptables, because the image may have chosen the backend: kube-proxy
// (KUBE-SERVICES), Calico (cali-), Tailscale (ts-), fail2ban (f2b-) and meshes.
//
// A chain is made by the host's iptables, in the backend that the host uses. A native table counts only if its program
// uses iptables unless somebody has chosen nftables instead, for the whole node or cluster: Docker and kube-proxy.
// Other native tables, such as those of firewalld, Podman, libvirt or systemd, stand beside either backend, and prove
// neither.
//
// To add a marker, add a line here, and a dump of the program in test/rules/programs.
var knownMarkers = [...]Marker{
	{Program: "kubelet", Table: "mangle", Chain: hintChain},
	{Program: "kubelet", Table: "mangle", Chain: canaryChain},

	// Docker since 17.06; daemon/libnetwork/firewall_linux.go in moby/moby.
	{Program: "Docker", Table: "filter", Chain: "DOCKER-USER"},
	// ufw; src/backend_iptables.py.
	{Program: "ufw", Table: "filter", Chain: "ufw-user-input"},
	{Program: "ufw", Table: "filter", Chain: "ufw6-user-input"},
	// libvirt since 5.1, for its virtual networks; src/network/network_iptables.c.
	{Program: "libvirt", Table: "filter", Chain: "LIBVIRT_INP"},
	// Podman with netavark before 2.0, which does not use iptables; src/firewall/varktables/types.rs in
	// containers/netavark v1.17.2, the last release that has the file.
	{Program: "Podman", Table: "filter", Chain: "NETAVARK_FORWARD"},
	// The CNI plugin firewall; plugins/meta/firewall/iptables.go in containernetworking/plugins.
	{Program: "CNI's firewall plugin", Table: "filter", Chain: "CNI-FORWARD"},
	// firewalld with FirewallBackend=iptables; src/firewall/core/ipXtables.py.
	{Program: "firewalld", Table: "filter", Chain: "INPUT_direct"},
	// The CNI plugin portmap; plugins/meta/portmap/portmap_iptables.go in containernetworking/plugins.
	{Program: "CNI's portmap plugin", Table: "nat", Chain: "CNI-HOSTPORT-DNAT"},
	// CRI-O, for the ports of pods; internal/hostport/hostport_iptables.go in cri-o/cri-o.
	{Program: "CRI-O", Table: "nat", Chain: "CRIO-HOSTPORTS-MASQ"},

	// NixOS since 2011, unless its firewall uses nftables; nixos/modules/services/networking/firewall-iptables.nix in
	// NixOS/nixpkgs.
	{Program: "NixOS", Table: "filter", Chain: "nixos-fw"},
	// Ubuntu images of Oracle Cloud since 2019 or before, only for IPv4; /etc/iptables/rules.v4 in the image.
	{Program: "Oracle Cloud's image", Table: "filter", Chain: "InstanceServices"},
	// Oracle Linux images of Oracle Cloud, by direct rules of firewalld, almost always only for IPv4;
	// /etc/firewalld/direct.xml in the image.
	{Program: "Oracle Cloud's image", Table: "filter", Chain: "BareMetalInstanceServices"},
	// Proxmox VE since 2014, IPv6 too; src/PVE/Firewall.pm in proxmox/pve-firewall. Since 4.0-2, its service chooses
	// iptables-legacy.
	{Program: "Proxmox VE", Table: "filter", Chain: "PVEFW-INPUT"},
	// Shorewall since 1.2.13 (2002) or before, and shorewall6 since 4.3, from the end of start until stop or clear;
	// Shorewall/Perl/Shorewall/Compiler.pm in Whissi/shorewall, a mirror.
	{Program: "Shorewall", Table: "filter", Chain: "shorewall"},
	// Nomad since 0.10, IPv6 too since 1.9, from the first allocation with a network of mode bridge;
	// client/allocrunner/networking_iptables.go in hashicorp/nomad.
	{Program: "Nomad", Table: "filter", Chain: "NOMAD-ADMIN"},

	// Docker since 29, with --firewall-backend=nftables; daemon/libnetwork/drivers/bridge/internal/nftabler in
	// moby/moby.
	{Program: "Docker", Table: "ip docker-bridges"},
	{Program: "Docker", Table: "ip6 docker-bridges"},
	// kube-proxy in nftables mode, whatever iptables is in its image; pkg/proxy/nftables/proxier.go in
	// kubernetes/kubernetes.
	{Program: "kube-proxy", Table: "ip kube-proxy"},
	{Program: "kube-proxy", Table: "ip6 kube-proxy"},
}

// markersOf yields the markers of a reason, those of IPv4 first.
func markersOf(r Reason) iter.Seq[Marker] {
	return func(yield func(Marker) bool) {
		for _, f := range families {
			for _, m := range &knownMarkers {
				m.Family = f
				if m.reason() == r && m.isPossible() && !yield(m) {
					return
				}
			}
		}
	}
}

func (m Marker) reason() Reason {
	switch m.Chain {
	case hintChain:
		return KubeletHint
	case canaryChain:
		return KubeletCanary
	}
	return HostProgram
}

// isPossible reports whether a marker can be in its family: a native table belongs to one.
func (m Marker) isPossible() bool {
	return m.Chain != "" || strings.HasPrefix(m.Table, "ip6 ") == (m.Family == IPv6)
}
