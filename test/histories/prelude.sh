# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# What a history is written in. Its container has read this first.
PATH=/usr/sbin:/usr/bin:/bin:/run/host
user() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+net_admin,+net_raw --ambient-caps=+net_admin,+net_raw "$@"; }
powerless() { setpriv --bounding-set=-net_admin --inh-caps=-all "$@"; }
# CALL INJECTION COMMAND...: as strace(1) calls them.
strike() { call=$1 what=$2; shift 2; strace -qq -o /dev/null -e trace=$call -e inject=$call:$what "$@"; }
# Somebody without any right holds the lock of the commands' directory, while a command runs.
locked() {
	setpriv --reuid=1000 --clear-groups --bounding-set=-all --inh-caps=-all flock -s -F /usr/sbin \
		sh -c 'echo >/run/held; exec sleep 60' &
	read -r line </run/held
	ran=0; "$@" || ran=$?
	kill -PIPE $!; wait $! || : # a signal that sh does not mention
	return $ran
}
# First calls at once: ADDRESS COMMAND..., each with an address that begins so.
together() {
	address=$1 pids=; shift
	for i in 1 2 3 4 5; do "$@" -s "$address$i" & pids="$pids $!"; done
	failed=0; for pid in $pids; do wait $pid || failed=$?; done
	return $failed
}
# What happens on the host.
chain() { for tables in iptables ip6tables; do $tables-$2 -w -t mangle -N "$1" 2>&1 || :; done; } # CHAIN BACKEND; it may be there
gone() { for tables in iptables ip6tables; do $tables-$1 -w -t mangle -F; $tables-$1 -w -t mangle -X; done; }
rules() { # BACKEND NUMBER
	{ echo '*filter'; i=0; while [ $i -lt $2 ]; do i=$((i + 1)); echo "-A FORWARD -d 172.17.0.0/16 -j ACCEPT"; done; echo COMMIT; } |
		iptables-$1-restore -w --noflush
}
docker() { printf '*filter\n:DOCKER-USER -\nCOMMIT\n' | iptables-$1-restore -w --noflush; }
native() { # FAMILY NAME NUMBER: a native table, and how many rules it gets
	nft add table $1 "$2"; nft add chain $1 "$2" c
	i=0; while [ $i -lt $3 ]; do i=$((i + 1)); nft add rule $1 "$2" c ip daddr 172.17.0.1 accept; done
}
