# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# wg-quick up guesses nft, then Docker writes six rules into legacy, then wg-quick down.

. /test/module/debian/wg-quick.sh

main() {
	run up wg-quick up four
	backend legacy iptables-restore --noflush </test/module/box/hosts/docker-dns.save
	run down wg-quick down four
}
