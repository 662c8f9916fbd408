// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import "cmp"

// kind is a kind of name. A kind that comes first is stronger.
type kind int

const (
	hints kind = iota
	canaries
	programs
)

// known returns the names of a kind in a family.
func known(k kind, f Family) []Name {
	switch k {
	case hints:
		return []Name{{Program: kubelet, Family: f, Table: "mangle", Chain: hintChain}}
	case canaries:
		return []Name{{Program: kubelet, Family: f, Table: "mangle", Chain: canaryChain}}
	}
	var all []Name
	for _, c := range hostChains {
		all = append(all, Name{Program: c.program, Family: f, Table: c.table, Chain: c.name(f)})
	}
	for _, t := range hostTables {
		all = append(all, Name{Program: t.program, Family: f, Table: t.name(f)})
	}
	return all
}

// The chains that kubelet makes in table mangle of the backend it uses, before it starts its first Pod
// (pkg/kubelet/kubelet_network_linux.go in kubernetes/kubernetes).
const (
	hintChain   = "KUBE-IPTABLES-HINT"
	canaryChain = "KUBE-KUBELET-CANARY"
	kubelet     = "kubelet"
)

// The names below are made by programs of the host, and by no container whose image chooses the backend. Not here are
// the chains of programs that run in containers with iptables of their own: kube-proxy (KUBE-SERVICES), Calico (cali-),
// Tailscale (ts-), fail2ban (f2b-) and meshes.
//
// To add a name, add a line, a dump of the program in test/hostprograms, and its row in docs/how-it-works.md.

// hostChain is a chain that a program of the host makes with iptables, in the backend that the host uses.
type hostChain struct {
	program string // its name for people
	table   string
	chain   string
	chain6  string // the one for IPv6, "" if it has the same name
}

var hostChains = [...]hostChain{
	// Docker since 17.06; daemon/libnetwork/firewall_linux.go in moby/moby.
	{program: "Docker", table: "filter", chain: "DOCKER-USER"},
	// ufw; src/backend_iptables.py.
	{program: "ufw", table: "filter", chain: "ufw-user-input", chain6: "ufw6-user-input"},
	// libvirt since 5.1, for its virtual networks; src/network/network_iptables.c.
	{program: "libvirt", table: "filter", chain: "LIBVIRT_INP"},
	// Podman with netavark; src/firewall/varktables/types.rs in containers/netavark.
	{program: "Podman", table: "filter", chain: "NETAVARK_FORWARD"},
	// The CNI plugin firewall; plugins/meta/firewall/iptables.go in containernetworking/plugins.
	{program: "CNI's firewall plugin", table: "filter", chain: "CNI-FORWARD"},
	// firewalld with FirewallBackend=iptables; src/firewall/core/ipXtables.py.
	{program: "firewalld", table: "filter", chain: "INPUT_direct"},
	// The CNI plugin portmap; plugins/meta/portmap/portmap_iptables.go in containernetworking/plugins.
	{program: "CNI's portmap plugin", table: "nat", chain: "CNI-HOSTPORT-DNAT"},
	// CRI-O, for the ports of pods; internal/hostport/hostport_iptables.go in cri-o/cri-o.
	{program: "CRI-O", table: "nat", chain: "CRIO-HOSTPORTS-MASQ"},
}

// name returns the chain's name in a family.
func (c hostChain) name(f Family) string {
	if f == IPv6 {
		return cmp.Or(c.chain6, c.chain)
	}
	return c.chain
}

// hostTable is a native table: it shows that the host uses nf_tables, whichever iptables an image has.
type hostTable struct {
	program string
	table   string
	inet    bool // it is of family inet; otherwise there is one of family ip, and one of ip6
}

var hostTables = [...]hostTable{
	// src/firewall/core/nftables.py.
	{program: "firewalld", table: "firewalld", inet: true},
	// Docker since 29, with --firewall-backend=nftables; daemon/libnetwork/drivers/bridge/internal/nftabler in
	// moby/moby.
	{program: "Docker", table: "docker-bridges"},
	// Podman with netavark since 1.10; src/firewall/nft.rs in containers/netavark.
	{program: "Podman", table: "netavark", inet: true},
	// kube-proxy in nftables mode, which does not depend on the iptables in its image; pkg/proxy/nftables/proxier.go
	// in kubernetes/kubernetes.
	{program: "kube-proxy", table: "kube-proxy"},
	// libvirt since 10.4; src/network/network_nftables.c.
	{program: "libvirt", table: "libvirt_network"},
	// The CNI plugin portmap since 1.6; plugins/meta/portmap/portmap_nftables.go in containernetworking/plugins.
	{program: "CNI's portmap plugin", table: "cni_hostport"},
	// CRI-O; internal/hostport/hostport_nftables.go in cri-o/cri-o.
	{program: "CRI-O", table: "crio-hostports"},
	// systemd-networkd and systemd-nspawn since systemd 248; src/shared/firewall-util-nft.c.
	{program: "systemd", table: "io.systemd.nat"},
}

// name returns the table's name in a family, as nft prints it.
func (t hostTable) name(f Family) string {
	if t.inet {
		return "inet " + t.table
	}
	return qualified(f, t.table)
}

// qualified names a table of a family as nft does: "ip filter".
func qualified(f Family, table string) string {
	if f == IPv6 {
		return "ip6 " + table
	}
	return "ip " + table
}
