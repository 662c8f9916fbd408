# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A node changes from nft to legacy while the container keeps running.

setup() { :; }

used() { iptables --version | sed 's/.*(//; s/)//; s/nf_tables/nft/'; }

main() {
	local family
	[ "$(used)" = nft ]
	for family in iptables ip6tables; do
		backend nft $family -t mangle -F
		backend nft $family -t mangle -X
		backend legacy $family -t mangle -N KUBE-IPTABLES-HINT
		backend legacy $family -t mangle -N KUBE-KUBELET-CANARY
	done
	if [ "$READONLY" = 1 ]; then
		# Each call looks for kubelet's chains, and they count more than what is recorded.
		[ "$(used)" = legacy ]
		return
	fi
	# The kept answer stays until the container is restarted or reset.
	[ "$(used)" = nft ]
	iptables-wrapper reset >/run/reset.log
	[ "$(used)" = legacy ]
}
