# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of dockerd's package for iptables, and of its bridge driver. Some of them make network namespaces. Their
# messages have the times that their calls took.

setup() { :; }

tests() { # PROGRAM ARGUMENT
	"/test/bin/$1" -test.v "$2" 2>&1 | sed -E 's/\(?[0-9.]+m?s\)?//g; /^time=/d'
}
# Ten check and add the same rules at once. How often each is there in the end is a matter of chance.
at_once() {
	tests moby-iptables.test -test.run=Concurrency
	backend "$BACKEND" iptables -w -F
	backend "$BACKEND" iptables -w -t nat -F
}

main() {
	iptables -N KEPT
	run iptables tests moby-iptables.test -test.skip=Concurrency
	grep -q '^--- PASS: TestExistsRaw' /test/out/$step.iptables.stdout
	run at-once at_once
	grep -q '^--- PASS: TestConcurrencyWithWait' /test/out/$step.at-once.stdout
	run bridge tests moby-iptabler.test '-test.run=^Test(CleanupIptableRules|ProgramIPTable|SetupIP|OutgoingNAT)'
	grep -q '^--- PASS: TestSetupIPChains' /test/out/$step.bridge.stdout
}
