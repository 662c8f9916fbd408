# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Creates kubelet's chains, and creates them again after they were flushed.

setup() { :; }

# chains NAME: how many chains of that name there are, in both families and backends.
chains() {
	local backend family
	for family in iptables ip6tables; do
		for backend in nft legacy; do backend $backend $family-save; done
	done | grep -c "^:$1 "
}
there() { [ "$(chains KUBE-KUBELET-CANARY)" = 6 ] && [ "$(chains KUBE-IPTABLES-HINT)" = 2 ]; }
start() {
	/test/bin/kubelet >/run/kubelet.ready 2>/run/kubelet.log &
	kubelet=$!
	wait_for grep -q ready /run/kubelet.ready
	wait_for there
	cat /run/kubelet.log >&2
}
# kubelet restores its chains once all canaries are gone.
flush() {
	local family table
	for family in iptables ip6tables; do
		for table in mangle nat filter; do
			backend "$BACKEND" $family -w -t $table -F
			backend "$BACKEND" $family -w -t $table -X
		done
	done
	wait_for there
}

main() {
	run start start
	run flush flush
	kill $kubelet
}
