# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The functions that situations are written with. What a situation prints is its result.
PLAIN=$PATH PATH=$TOOLS:$PATH

# call PROGRAM ARGUMENTS...: a call that must succeed, in the environment of a client. Printed is a status other than 0. What is said on
# standard error is another property, which has a row of its own for all situations.
call() {
	status=0
	env -u TMP -u TOOLS -u LC_ALL "PATH=$PLAIN" "$@" >/dev/null 2>"$TMP/err" || status=$?
	[ $status = 0 ] || echo "status $status"
	[ ! -s "$TMP/err" ] || { read -r line <"$TMP/err"; echo "$line" >>"$TMP/besides"; }
}

# add ADDRESS: a client adds a rule.
add() { call iptables -A INPUT -s "$1" -j ACCEPT; }

# saved BACKEND TEXT: its rules of the family that an address or chain is of; those of IPv6 if there is a colon in it. It asks for no
# table, so it makes none. It becomes that program, so it needs a subshell.
saved() { case $2 in *:*) exec ip6tables-$1-save 2>/dev/null ;; *) exec iptables-$1-save 2>/dev/null ;; esac }

# where TEXT: the backends that have it.
where() {
	found=
	for backend in nft legacy; do
		case "$(saved $backend "$1")" in *"$1"*) found="${found:+$found and }$backend" ;; esac
	done
	echo "${found:-nowhere}"
}

# client: a rule of each family. Printed is where they are.
client() {
	add 192.0.2.1
	call ip6tables -A INPUT -s 2001:db8::1 -j ACCEPT
	where 192.0.2.1 >"$TMP/ipv4"
	where 2001:db8::1 >"$TMP/ipv6"
	read -r ipv4 <"$TMP/ipv4"
	read -r ipv6 <"$TMP/ipv6"
	if [ "$ipv4" = "$ipv6" ]; then echo "$ipv4"; else echo "IPv4 in $ipv4, IPv6 in $ipv6"; fi
}

# The host's side. fill BACKEND NUMBER [TABLES]: so many rules.
hint() { $2tables-$1 -t mangle -N KUBE-IPTABLES-HINT; }
canary() { $2tables-$1 -t mangle -N KUBE-KUBELET-CANARY; }
fill() {
	{
		i=0
		echo '*filter'
		while [ $i -lt $2 ]; do i=$((i + 1)); echo "-A FORWARD -p tcp --dport $i -j ACCEPT"; done
		echo COMMIT
	} | "${3:-ip}tables-$1-restore" -w --noflush
}

# read_only: a read-only root file system. /run and /dev are writable, as iptables-legacy needs its lock in /run.
read_only() {
	for mounted in / /usr/sbin /etc/alternatives /var/lib/dpkg /var/log; do mount -o remount,bind,ro "$mounted"; done
}

# user PROGRAM ARGUMENTS...: a call of another user, who has the rights to change rules.
user() {
	chmod 666 /run/xtables.lock 2>/dev/null || { touch /run/xtables.lock; chmod 666 /run/xtables.lock; }
	call setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+net_admin,+net_raw --ambient-caps=+net_admin,+net_raw "$@"
}
