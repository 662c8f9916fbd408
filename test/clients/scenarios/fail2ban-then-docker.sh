# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The first ban is written on an empty host, by a guess. Then Docker writes rules into legacy. The ban can be removed.

. /test/module/debian/fail2ban.sh

docker() { backend legacy iptables-restore --noflush </test/module/box/hosts/docker.save; }

main() {
	run start start
	run ban ban 192.0.2.1
	docker
	run unban unban 192.0.2.1
	run ban-again ban 198.51.100.7
	run stop stop
}
