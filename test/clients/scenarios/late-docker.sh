# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The first ban is written on an empty host, by a guess. Then Docker starts with legacy, and makes its chain: fail2ban's next bans
# go there. The first one stays in nft until it is removed there.

. /test/module/debian/fail2ban.sh

docker() {
	backend legacy iptables -N DOCKER-USER
	backend legacy iptables -I FORWARD -j DOCKER-USER
}
# has MODE ADDRESS: bans it
has() { backend "$1" iptables-save | grep -q -e "-s $2/32 .*-j REJECT"; }

main() {
	run start start
	run ban ban 192.0.2.1
	has nft 192.0.2.1
	! has legacy 192.0.2.1
	docker
	run ban-again ban 198.51.100.7
	has legacy 198.51.100.7
	! has nft 198.51.100.7
	has nft 192.0.2.1
	run stop stop
	! has legacy 198.51.100.7
	# The remedy: nft's own program removes what it made.
	backend nft iptables -F
	! has nft 192.0.2.1
}
