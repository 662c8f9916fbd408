# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# dockerd and fail2ban are the first callers, at the same time.

. /test/module/debian/dockerd.sh

# renamed FUNCTION NAME: copies a function under another name.
renamed() { eval "$2$(declare -f "$1" | sed "1s/$1//")"; }

renamed setup setup_docker
renamed stop stop_docker
renamed said said_docker
. /test/module/debian/fail2ban.sh
renamed setup setup_fail2ban
setup() { setup_docker && setup_fail2ban; }

at_once() {
	# What it says is printed when it has ended, so that the order of the lines does not depend on the machine's load.
	{ fail2ban-client -x start && fail2ban-client set test banip 192.0.2.1; } >/run/fail2ban.said 2>&1 &
	local fail2ban=$!
	dockerd --cgroup-parent clients-test >>/var/log/dockerd.log 2>&1 &
	wait_for docker version
	wait_for test -e /run/done.ban.192.0.2.1
	wait "$fail2ban"
	cat /run/fail2ban.said >&2
	said
	said_docker
}

main() {
	run at-once at_once
	run stop-docker stop_docker
	run unban unban 192.0.2.1
}
