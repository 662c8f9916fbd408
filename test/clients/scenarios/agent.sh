# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# An agent on a legacy host writes rules into a pod's network namespace before it called for the host, and into another's
# after. A pod's namespace has no evidence of the host's backend: the switch decides there, too, and on a read-only root, where
# there is only the memory of the host's namespace, a guess.
# FIRST: what the agent does at its start as a remedy.

setup() {
	ip netns add before
	ip netns add after
}

write() { ip netns exec "$1" iptables -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 15001; }
# where POD: the backend that has the pod's rule
where() {
	local mode
	for mode in nft legacy; do
		! ip netns exec "$1" /usr/sbin/xtables-$mode-multi iptables-save | grep -q 'to-ports 15001' || echo $mode
	done
}

main() {
	[ "$FIRST" != select ] || iptables-wrapper select >/run/select.log
	write before
	iptables -A INPUT -s 192.0.2.1 -j ACCEPT
	backend legacy iptables -C INPUT -s 192.0.2.1 -j ACCEPT
	write after
	local pods
	pods="$(where before) $(where after)"
	case $FIRST,$READONLY in
	*,1) [ "$pods" = "nft nft" ] ;;
	nothing,0) [ "$pods" = "nft legacy" ] ;;
	select,0) [ "$pods" = "legacy legacy" ] ;;
	esac
}
