# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# OpenVPN's up and down scripts, for which it clears the environment.

setup() {
	cat >/etc/openvpn/up.sh <<'END'
#!/bin/sh
set -e
iptables -t nat -A POSTROUTING -o "$dev" -j MASQUERADE
iptables -A FORWARD -i "$dev" -j ACCEPT
ip6tables -A FORWARD -i "$dev" -j DROP
iptables -P FORWARD DROP
END
	cat >/etc/openvpn/down.sh <<'END'
#!/bin/sh
set -e
iptables -t nat -D POSTROUTING -o "$dev" -j MASQUERADE
iptables -D FORWARD -i "$dev" -j ACCEPT
ip6tables -D FORWARD -i "$dev" -j DROP
iptables -P FORWARD ACCEPT
END
	chmod +x /etc/openvpn/*.sh
	openvpn --genkey secret /etc/openvpn/key
}

up() {
	: >/run/openvpn.log
	openvpn --suppress-timestamps --dev tun0 --ifconfig 10.8.0.1 10.8.0.2 --lport 11940 --script-security 2 \
		--up /etc/openvpn/up.sh --down /etc/openvpn/down.sh --secret /etc/openvpn/key --cipher AES-256-CBC \
		--daemon --log /run/openvpn.log --writepid /run/openvpn.pid || return
	wait_for grep -q 'UDPv4 link' /run/openvpn.log
	log
}
down() {
	: >/run/openvpn.log
	kill "$(cat /run/openvpn.pid)" && wait_for grep -q 'process exiting' /run/openvpn.log
	log
}
# Whether the signal interrupts it is a matter of time. It goes on writing where it was before the file was emptied.
log() { tr -d '\000' </run/openvpn.log | grep -v '^event_wait : Interrupted' >&2; }

main() {
	run up up
	run down down
	run up-again up
	run down-again down
}
