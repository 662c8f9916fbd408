# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# An agent on a legacy host writes rules into a pod's network namespace before it called for the host, and into another's
# after. A pod's namespace has no marker of the host's: there each call guesses. Through the switch, what is stored for the host
# decides in pods, too.
# LINKS: switch, as install makes them; straight: the commands are links to the wrapper's file, and nothing is kept.

setup() {
	ip netns add before
	ip netns add after
}

[ "$LINKS" = switch ] || wrap() {
	local name
	cp /test/bin/iptables-wrapper /usr/sbin/iptables-wrapper
	for name in $names; do ln -sf iptables-wrapper "/usr/sbin/$name"; done
}

write() { ip netns exec "$1" iptables -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 15001; }
# where POD: the backend that has the pod's rule
where() {
	local backend
	for backend in nft legacy; do
		! ip netns exec "$1" /usr/sbin/xtables-$backend-multi iptables-save | grep -q 'to-ports 15001' || echo $backend
	done
}

main() {
	write before
	iptables -A INPUT -s 192.0.2.1 -j ACCEPT
	backend legacy iptables -C INPUT -s 192.0.2.1 -j ACCEPT
	write after
	local pods records
	pods="$(where before) $(where after)"
	case $LINKS,$READONLY in
	switch,0) [ "$pods" = "nft legacy" ] ;;
	*) [ "$pods" = "nft nft" ] ;;
	esac
	# There is one of the host's namespace, and none of a pod's.
	records=$(find /dev -name 'iptables-backend-*' | wc -l)
	case $LINKS in
	switch) [ "$records" = 1 ] ;;
	straight) [ "$records" = 0 ] ;;
	esac
}
