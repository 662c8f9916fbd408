# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The examples in docs/library.md that need other modules, in an image without the wrapper, whose six commands resolve to the other backend.

setup() { :; }

main() {
	case $BACKEND in nft) direct legacy ;; legacy) direct nft ;; esac
	local program family
	for program in library-kubernetes library-exec; do
		run $program /test/bin/$program
		grep -q '^0$' /test/out/$step.$program.status
	done
	# Only multi-call programs, as in small images.
	local chain
	for family in iptables ip6tables; do
		for chain in EXAMPLE EXAMPLE-EXEC; do
			backend "$BACKEND" $family -D INPUT -j $chain
			backend "$BACKEND" $family -F $chain
		done
	done
	rm /usr/sbin/ip*tables-{nft,legacy}*
	run library-exec-multi /test/bin/library-exec
	grep -q '^0$' /test/out/$step.library-exec-multi.status
	run library-kubernetes-multi /test/bin/library-kubernetes
	grep -q '^0$' /test/out/$step.library-kubernetes-multi.status
	for family in iptables ip6tables; do
		backend "$BACKEND" $family -C EXAMPLE-EXEC -p tcp --dport 8444 -j ACCEPT
		backend "$BACKEND" $family -C INPUT -j EXAMPLE-EXEC
		backend "$BACKEND" $family -C EXAMPLE -p tcp --dport 8443 -j ACCEPT
		backend "$BACKEND" $family -C INPUT -j EXAMPLE
	done
	# The other backend has no rules and no tables.
	case $BACKEND in
	nft) [ -z "$(cat /proc/net/ip_tables_names /proc/net/ip6_tables_names)" ] ;;
	legacy) [ -z "$(nft list tables)" ] ;;
	esac
}
