# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Creates kubelet's chains, and creates them again after they were flushed.

setup() { :; }

# chain NAME: in how many families the chain exists, in either backend.
chain() {
	local mode family
	for family in iptables ip6tables; do
		for mode in nft legacy; do
			! backend $mode $family-save | grep -q "^:$1 " || echo
		done
	done | grep -c ''
}
there() { [ "$(chain KUBE-KUBELET-CANARY)" = 2 ] && [ "$(chain KUBE-IPTABLES-HINT)" = 2 ]; }
start() {
	/test/bin/kubelet 2>/run/kubelet.log &
	kubelet=$!
	wait_for there
	cat /run/kubelet.log >&2
}
flush() {
	local family
	for family in iptables ip6tables; do
		backend "$MODE" $family -t mangle -F && backend "$MODE" $family -t mangle -X
	done
	wait_for there
}

main() {
	run start start
	run flush flush
	kill $kubelet
}
