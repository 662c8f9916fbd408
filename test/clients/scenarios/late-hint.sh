# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# kube-proxy guesses nft and writes its rules. Then kubelet starts with legacy and creates its hint: kube-proxy's next rules
# go to legacy. Its first rules stay in nft until they are removed there.

KUBE_PROXY_MODE=iptables
. /test/module/kubernetes/kube-proxy.sh

kubelet() {
	local dir=/run/legacy name
	mkdir -p $dir
	for name in $names; do ln -sf /usr/sbin/xtables-legacy-multi $dir/$name; done
	PATH=$dir:$PATH /test/bin/kubelet &
	wait_for has legacy KUBE-IPTABLES-HINT
}
# has BACKEND TEXT: in both families
has() { backend "$1" iptables-save | grep -q -e "$2" && backend "$1" ip6tables-save | grep -q -e "$2"; }
has_not() { ! backend "$1" iptables-save | grep -q -e "$2" && ! backend "$1" ip6tables-save | grep -q -e "$2"; }

main() {
	start
	has nft default/web:main
	has_not legacy KUBE-
	kubelet
	# It misses its canary in legacy, and writes all its rules there.
	wait_for has legacy default/web:main
	add
	wait_for has legacy default/late:main
	# The first rules are still there.
	has nft default/web:main
	# The remedy: nft's own programs remove them. The variable would not help once legacy is stored.
	local family table
	for family in iptables ip6tables; do
		for table in mangle nat filter; do
			$family-nft -t $table -F
			$family-nft -t $table -X
		done
	done
	has_not nft KUBE-
	has legacy default/web:main
}
