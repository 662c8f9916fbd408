# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Saves, flushes and loads again: between two calls, the host has no rules and no chains.

volumes=/etc/iptables

setup() { mkdir -p /etc/iptables; }

main() {
	run write sh -c 'iptables -A INPUT -s 192.0.2.1 -j DROP && ip6tables -A INPUT -s 2001:db8::1 -j DROP'
	run save netfilter-persistent save
	run flush netfilter-persistent flush
	run reload netfilter-persistent reload
	run again netfilter-persistent reload
}
