# The functions that situations are written with. What a situation prints is its result.
PLAIN=$PATH PATH=$TOOLS:$PATH

# call PROGRAM ARGUMENTS...: a call of a client. Printed is what a client must not see: a status other than 0, and anything on
# standard error. Standard output is in the file out.
call() {
	status=0
	env -u TMP -u TOOLS -u LC_ALL "PATH=$PLAIN" "$@" >"$TMP/out" 2>"$TMP/err" || status=$?
	[ $status = 0 ] || echo "status $status"
	[ ! -s "$TMP/err" ] || echo "on stderr: $(head -n 1 "$TMP/err" | tr -d ',`"' | cut -c -60)"
}

# load ADDRESS, load6 ADDRESS: a client adds a rule by standard input.
load() { printf '*filter\n-A INPUT -s %s -j ACCEPT\nCOMMIT\n' "$1" | call iptables-restore --noflush; }
load6() { printf '*filter\n-A INPUT -s %s -j ACCEPT\nCOMMIT\n' "$1" | call ip6tables-restore --noflush; }

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

# client: rules by standard input and by an argument, in both families. Printed is where they are.
client() {
	load 192.0.2.1
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
