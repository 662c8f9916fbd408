# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Up and down, for IPv4 only and for both families. nft is hidden, because wg-quick prefers it to iptables.

setup() {
	mv /usr/sbin/nft /usr/local/bin/not-for-wg-quick
	nft=/usr/local/bin/not-for-wg-quick
	wireguard four 10.7.0.2/32 0.0.0.0/0
	wireguard both '10.7.0.2/32, 2001:db8:7::2/128' '0.0.0.0/0, ::/0'
}

# wireguard NAME ADDRESSES DESTINATIONS
wireguard() {
	mkdir -p /etc/wireguard
	cat >"/etc/wireguard/$1.conf" <<END
[Interface]
PrivateKey = $(wg genkey)
Address = $2
ListenPort = 51820
[Peer]
PublicKey = $(wg genkey | wg pubkey)
Endpoint = 192.0.2.1:51820
AllowedIPs = $3
END
	chmod 600 "/etc/wireguard/$1.conf"
}

main() {
	run four-up wg-quick up four
	run four-down wg-quick down four
	run both-up wg-quick up both
	run both-down wg-quick down both
}
