# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Writes flannel's rules in both families, restores those that are lost, moves to another subnet, and cleans up.

setup() { :; }

# For each family: for masquerading and for forwarding.
written() { [ "$(grep -c 'bootstrap done' /run/flannel.log)" -ge 4 ]; }
restored() { backend "$BACKEND" iptables-save | grep -q -e '-A FLANNEL-FWD -d .*-j ACCEPT'; }
# flannel's errors and warnings.
said() {
	sed -n 's/^\([EW]\)[0-9]* [0-9:.]* *[0-9]* /\1 /p' /run/flannel.log | sort -u >&2
	: >/run/flannel.log
}
start() { # ARGUMENTS of flannel/main.go
	/test/bin/flannel "$@" 2>>/run/flannel.log &
	flannel=$!
	wait_for written
	said
}
stop() { kill $flannel && wait $flannel; said; }
# What another program flushes is there again after a second.
lose() { backend "$BACKEND" iptables -w -F FLANNEL-FWD && wait_for restored; said; }
cleanup() { /test/bin/flannel 2>>/run/flannel.log; said; }

main() {
	run start start 1
	run lose lose
	run stop stop
	run move start 2 1
	run stop-again stop
	run cleanup cleanup
}
