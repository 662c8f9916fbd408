# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Runs go-iptables' own tests.

setup() { :; }

tests() { /test/bin/go-iptables.test -test.v | sed 's/([0-9.]*s)//'; }

main() {
	iptables -N KEPT
	run tests tests
	grep -q '^--- PASS: TestChain' /test/out/$step.tests.stdout
}
