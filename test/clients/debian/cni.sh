# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The plugins bridge, portmap and firewall as a chain, for two pods.

setup() {
	ip netns add pod1
	ip netns add pod2
}

chain() { python3 /test/module/debian/cni.py "$@"; }

main() {
	run add chain ADD pod1 8080
	run check chain CHECK pod1 8080
	run add-another chain ADD pod2 8081
	run delete chain DEL pod1 8080
	run delete-again chain DEL pod1 8080
	run delete-another chain DEL pod2 8081
}
