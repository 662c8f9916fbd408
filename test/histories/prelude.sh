# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# What a history is written in. Its container has read this first.
PATH=/usr/sbin:/usr/bin:/bin
user() { setpriv --reuid=65534 --regid="$GROUP" --clear-groups --inh-caps=+net_admin,+net_raw --ambient-caps=+net_admin,+net_raw "$@"; }
powerless() { setpriv --bounding-set=-net_admin --inh-caps=-all "$@"; }
override() { (export IPTABLES_WRAPPER_MODE="$1"; shift; "$@") }
stranger() { setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }
# What is there, by the judgement of iptables itself.
saved() { test $1 = nft || read -r _ </proc/net/ip_tables_names && iptables-$1-save; test $1 = nft || read -r _ </proc/net/ip6_tables_names && ip6tables-$1-save || :; }
# What there is after a command: with few processes, because it is asked for each time.
look() {
	for mode in nft legacy; do saved $mode >"$H/$mode"; done
	cd /usr/sbin
	readlink iptables-current iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore >"$H/names" || :
	cd /
}
# How it ended, and what there is, in a form that can be compared.
outcome() {
	{
		echo "$ran"
		sed -n '1s/.*(\(nf_tables\|legacy\)).*/\1/p' "$H/out"
		for mode in nft legacy; do sed "/^#/d; s/^/$mode: /" "$H/$mode"; done
		cat "$H/names" "$H/err"
	} | sort >"$H/outcome"
}
# What happens on the host.
chain() { iptables-"$2" -w -t mangle -N "$1"; ip6tables-"$2" -w -t mangle -N "$1"; } # CHAIN MODE
kubelet_gone() { for tables in iptables ip6tables; do $tables-$1 -w -t mangle -F; $tables-$1 -w -t mangle -X; done; }
rules() { # MODE NUMBER
	{ echo '*filter'; seq -f '-A FORWARD -d 172.17.0.0/16 -m comment --comment %g -j ACCEPT' "$2"; echo COMMIT; } | iptables-$1-restore -w --noflush
}
flushed() { # MODE
	case $1 in
	nft) nft flush ruleset ;;
	legacy) for tables in iptables ip6tables; do for table in $(cat /proc/net/${tables%tables}_tables_names); do $tables-legacy -w -t $table -F; $tables-legacy -w -t $table -X; done; done ;;
	esac
}
native() { nft add table inet firewall; nft add chain inet firewall input '{ type filter hook input priority 0; }'; nft add rule inet firewall input ct state established accept; }
# A writer of nftables that interrupts every dump, while a command runs.
busy() {
	nft add table inet busy; nft add set inet busy s '{ type inet_service; }'
	yes 'add element inet busy s { 1 }
delete element inet busy s { 1 }' | nft -i >/dev/null 2>&1 &
	sleep 0.05
	ran=0; "$@" || ran=$?
	kill -PIPE $!; wait $! || : # a signal that sh does not mention
	nft delete table inet busy
	return $ran
}
# Somebody without any right holds the lock of the directory of the commands, while a command runs.
locked() {
	setpriv --reuid=1000 --clear-groups --bounding-set=-all --inh-caps=-all flock -s -F /usr/sbin sleep 5 &
	sleep 0.02
	ran=0; "$@" || ran=$?
	kill -PIPE $!; wait $! || :
	return $ran
}
# The same user takes the names that a memory could have, or removes what is there.
taken() {
	name=$(stat -L -c %i /proc/self/ns/net).$(sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20).$(cut -c -8 /proc/sys/kernel/random/boot_id)
	for uid in 0 65534; do stranger ln -s "$1" /dev/shm/iptables-wrapper.$uid.$name; done
	stranger ln -s "$1" /dev/iptables-wrapper
}
removed() { stranger sh -c 'rm -rf /dev/shm/* /dev/iptables-wrapper /run/iptables-wrapper*'; }
# First calls at once: NUMBER ADDRESS COMMAND..., each with an address that begins so.
together() {
	number=$1 address=$2 pids=; shift 2
	for i in $(seq "$number"); do "$@" -s "$address$i" & pids="$pids $!"; done
	failed=0; for pid in $pids; do wait $pid || failed=$?; done
	return $failed
}
# CALL INJECTION COMMAND...: as strace(1) calls them.
strike() { call=$1 what=$2; shift 2; strace -qq -o /dev/null -e trace=$call -e inject=$call:$what "$@"; }
