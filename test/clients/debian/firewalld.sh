# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Starts, opens a port, reloads and stops. firewalld sets its own environment, and flushes everything before it writes.

volumes=/etc/firewalld

setup() {
	sed -i 's/^FirewallBackend=.*/FirewallBackend=iptables/' /etc/firewalld/firewalld.conf
	mkdir -p /run/dbus /run/firewalld
	ip link add eth0 type veth peer name eth1
	dbus-uuidgen --ensure
	: >/var/log/firewalld
}

# firewalld's errors and warnings.
said() {
	sed -n 's/^[-0-9]* [:0-9]* \(ERROR\|WARNING\)/\1/p' /var/log/firewalld >&2
	: >/var/log/firewalld
}
start() {
	dbus-daemon --system --fork || return
	firewalld --nofork --nopid >/var/log/firewalld.out 2>&1 &
	firewalld=$!
	wait_for firewall-cmd --state
	said
}
open() {
	firewall-cmd --permanent --zone=public --add-port=8443/tcp && firewall-cmd --permanent --zone=public --add-masquerade &&
		firewall-cmd --permanent --zone=public --add-interface=eth0
	said
}
rich() {
	firewall-cmd --zone=public --add-rich-rule='rule family=ipv6 source address=2001:db8::/32 drop' &&
		firewall-cmd --zone=public --add-forward-port=port=80:proto=tcp:toport=8080:toaddr=192.0.2.9
	said
}
reload() { firewall-cmd --reload; said; }
complete() { firewall-cmd --complete-reload; said; }
stop() { kill $firewalld && wait $firewalld; said; }

main() {
	run start start
	run open open
	run reload reload
	run rich rich
	run complete-reload complete
	run stop stop
}
