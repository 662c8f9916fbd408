// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"slices"
	"strings"
)

// Programs that run on the host itself keep their rules in the backend that the host uses, whatever containers have
// done. They are known by names that they alone make. The names of programs that also run in containers are not here:
// kube-proxy, whose mode is a setting of the cluster (KUBE-SERVICES, table "ip kube-proxy"), Calico (cali-), Tailscale
// (ts-), fail2ban (f2b-) and meshes.
//
// To add a name, add a line, a dump of the program in test/rules/programs, and its row in docs/how-it-works.md.

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

// hostTables are tables that programs of the host make with nftables. They say nothing of iptables itself, but a host
// with such programs hardly uses x_tables for the rest.
var hostTables = [...]Program{
	// src/firewall/core/nftables.py.
	{Name: "firewalld", Table: "inet firewalld"},
	// Docker since 29, with --firewall-backend=nftables; daemon/libnetwork/drivers/bridge/internal/nftabler in
	// moby/moby.
	{Name: "Docker", Table: "ip docker-bridges"},
	{Name: "Docker", Table: "ip6 docker-bridges"},
	// Podman with netavark since 1.10; src/firewall/nft.rs in containers/netavark.
	{Name: "Podman", Table: "inet netavark"},
	// libvirt since 10.4; src/network/network_nftables.c.
	{Name: "libvirt", Table: "ip libvirt_network"},
	{Name: "libvirt", Table: "ip6 libvirt_network"},
	// The CNI plugin portmap since 1.6; plugins/meta/portmap/portmap_nftables.go in containernetworking/plugins.
	{Name: "CNI's portmap plugin", Table: "ip cni_hostport"},
	{Name: "CNI's portmap plugin", Table: "ip6 cni_hostport"},
	// CRI-O; internal/hostport/hostport_nftables.go in cri-o/cri-o.
	{Name: "CRI-O", Table: "ip crio-hostports"},
	{Name: "CRI-O", Table: "ip6 crio-hostports"},
	// systemd-networkd and systemd-nspawn since systemd 248; src/shared/firewall-util-nft.c.
	{Name: "systemd", Table: "ip io.systemd.nat"},
	{Name: "systemd", Table: "ip6 io.systemd.nat"},
}

// qualified names a table of the family, as nft does: "ip filter".
func (f Family) qualified(name string) string {
	if f == IPv6 {
		return "ip6 " + name
	}
	return "ip " + name
}

// nativeTables returns the tables of a family that iptables does not use. A table of family inet counts for both.
func nativeTables(f Family, tables []string) (native []string) {
	for _, t := range tables {
		name, ofThisFamily := strings.CutPrefix(t, f.qualified(""))
		ofIptables := slices.Contains(tableNames[:], name)
		if ofThisFamily && !ofIptables || strings.HasPrefix(t, "inet ") {
			native = append(native, t)
		}
	}
	return native
}

// hostTablesAmong returns the programs of the host that made some of nftables' tables.
func hostTablesAmong(tables []string) (found []Program) {
	for _, known := range hostTables {
		if slices.Contains(tables, known.Table) {
			found = append(found, known)
		}
	}
	return found
}

// programsIn returns the programs of the host that made chains of a table of legacy.
func (t legacyTable) programsIn(f Family, table string) (found []Program) {
	for _, c := range hostChains {
		if c.table == table && t.has(c.name(f)) == Yes {
			found = append(found, Program{Name: c.program, Table: table, Chain: c.name(f)})
		}
	}
	return found
}

// in says where the program keeps its rules.
func (p Program) in(backend Mode) string {
	rules := p.Name + " keeps its rules in " + string(backend)
	if p.Chain == "" {
		return rules + ": table " + p.Table
	}
	return rules + ": chain " + p.Chain + " in " + p.Table
}
