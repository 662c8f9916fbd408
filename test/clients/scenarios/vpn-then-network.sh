# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A VPN container drops everything except its tunnel. Then its network is connected: Docker writes six rules for DNS into
# legacy. On reconnect, the container deletes its own rule and allows another server.

setup() { :; }

up() {
	local family
	for family in iptables ip6tables; do
		$family -P INPUT DROP && $family -P OUTPUT DROP && $family -P FORWARD DROP &&
			$family -A OUTPUT -o lo -j ACCEPT && $family -A OUTPUT -o tun0 -j ACCEPT || return
	done
	iptables -A OUTPUT -d 192.0.2.1 -p udp --dport 1194 -j ACCEPT
}
reconnect() {
	iptables -D OUTPUT -d 192.0.2.1 -p udp --dport 1194 -j ACCEPT &&
		iptables -A OUTPUT -d 192.0.2.2 -p udp --dport 1194 -j ACCEPT
}

main() {
	run up up
	backend legacy iptables-restore --noflush </test/module/box/hosts/docker-dns.save
	run reconnect reconnect
}
