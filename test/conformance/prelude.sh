# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The functions that situations are written with. What a situation prints is its result.
PLAIN=$PATH PATH=$TOOLS:$PATH

# as_client PROGRAM ARGUMENTS...: in the environment of a client.
as_client() { env -u TMP -u TOOLS -u LC_ALL "PATH=$PLAIN" "$@" >"$TMP/out" 2>"$TMP/err"; }

# call PROGRAM ARGUMENTS...: a call that must succeed. Printed is a status other than 0. What is said on standard error is another
# property, which has a row of its own for all situations. Standard output is in the file out.
call() {
	status=0
	as_client "$@" || status=$?
	[ $status = 0 ] || echo "status $status"
	[ ! -s "$TMP/err" ] || echo "$(head -n 1 "$TMP/err" | cut -c -100)" >>"$TMP/besides"
}

# try PROGRAM ARGUMENTS...: a call that may fail, and say so. refused: one that must.
try() { status=0; as_client "$@" || status=$?; }
refused() {
	status=0
	as_client "$@" || status=$?
	echo "status $status"
	if [ -s "$TMP/err" ]; then echo "says why"; else echo "says nothing"; fi
}

# add ADDRESS: a client adds a rule. load ADDRESS: by standard input.
add() { call iptables -A INPUT -s "$1" -j ACCEPT; }
load() { printf '*filter\n-A INPUT -s %s -j ACCEPT\nCOMMIT\n' "$1" | call iptables-restore --noflush; }

# has BACKEND PATTERN: whether a line of its saved rules matches. It asks for no table, so it makes none.
has() { (iptables-$1-save; ip6tables-$1-save) 2>/dev/null | grep -q -e "$2"; }

# where PATTERN: the backends that have it.
where() {
	found=
	for backend in nft legacy; do
		if has $backend "$1"; then found="${found:+$found and }$backend"; fi
	done
	echo "${found:-nowhere}"
}

# ran: which backend printed its version into the file out. backend NAME: which one a name runs, whatever the host's rules.
ran() { if grep -q legacy "$TMP/out"; then echo legacy; elif grep -q nf_tables "$TMP/out"; then echo nft; else echo neither; fi; }
backend() { call "$1" --version; ran; }

# client: a rule of each family. Printed is where they are.
client() {
	add 192.0.2.1
	call ip6tables -A INPUT -s 2001:db8::1 -j ACCEPT
	ipv4=$(where 192.0.2.1) ipv6=$(where 2001:db8::1)
	if [ "$ipv4" = "$ipv6" ]; then echo "$ipv4"; else echo "IPv4 in $ipv4, IPv6 in $ipv6"; fi
}

# The host's side. fill BACKEND NUMBER [TABLES]: so many rules.
hint() { $2tables-$1 -t mangle -N KUBE-IPTABLES-HINT; }
canary() { $2tables-$1 -t mangle -N KUBE-KUBELET-CANARY; }
fill() { (echo '*filter'; seq -f '-A FORWARD -p tcp --dport %g -j ACCEPT' "$2"; echo COMMIT) | "${3:-ip}tables-$1-restore" -w --noflush; }

# read_only: a read-only root file system. /run and /dev/shm are writable, as iptables-legacy needs its lock in /run.
read_only() {
	for mounted in / /usr/sbin /etc/alternatives /var/lib/dpkg /var/log; do mount -o remount,bind,ro "$mounted"; done
}

# own_dev: a /dev as container runtimes make it, with /dev/shm for everybody. no_shm: without one.
no_shm() {
	mkdir "$TMP/dev"; mount -t tmpfs -o mode=755 none "$TMP/dev"
	cp -a /dev/null /dev/zero /dev/urandom /dev/tty "$TMP/dev"; ln -s pts/ptmx "$TMP/dev/ptmx"; mkdir "$TMP/dev/pts"
	mount --move "$TMP/dev" /dev
}
own_dev() { no_shm; mkdir /dev/shm; mount -t tmpfs -o mode=1777 none /dev/shm; }

# user PROGRAM ARGUMENTS...: a call of another user, who has the rights to change rules, and those in also.
also=
user() {
	chmod 666 /run/xtables.lock 2>/dev/null || { touch /run/xtables.lock; chmod 666 /run/xtables.lock; }
	call setpriv --reuid=65534 --regid=65534 --clear-groups "--inh-caps=+net_admin,+net_raw$also" "--ambient-caps=+net_admin,+net_raw$also" "$@"
}
