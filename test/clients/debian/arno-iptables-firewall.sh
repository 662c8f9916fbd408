# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Flushes everything, then calls iptables several hundred times.

setup() {
	ip link add eth0 type veth peer name peer0
	ip link add eth1 type veth peer name peer1
	ip address add 198.51.100.2/24 dev eth0
	ip address add 10.1.0.1/24 dev eth1
	ip link set eth0 up
	ip link set eth1 up
	cat >/etc/arno-iptables-firewall/conf.d/99test.conf <<'END'
EXT_IF="eth0"
EXT_IF_DHCP_IP=0
INT_IF="eth1"
INTERNAL_NET="10.1.0.0/24"
NAT=1
NAT_INTERNAL_NET="10.1.0.0/24"
OPEN_TCP="22 443"
OPEN_UDP="53"
IPV6_SUPPORT=1
END
}

main() {
	run start arno-iptables-firewall start
	run stop arno-iptables-firewall stop
}
