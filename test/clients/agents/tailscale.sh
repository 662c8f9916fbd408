# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Writes its rules in both families twice, and removes them twice.

setup() { :; }

main() {
	run up /test/bin/tailscale
	run up-again /test/bin/tailscale
	run down /test/bin/tailscale down
	run down-again /test/bin/tailscale down
}
