# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Adds rules in both families, enables, reloads and disables.

volumes="/etc/ufw /etc/default"

setup() { :; }

main() {
	run allow ufw allow 22/tcp
	run enable ufw --force enable
	run deny ufw deny from 2001:db8::/32
	run limit ufw limit proto tcp from 192.0.2.0/24 to any port 80
	run reload ufw reload
	run delete ufw --force delete allow 22/tcp
	run disable ufw disable
}
