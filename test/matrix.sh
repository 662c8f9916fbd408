#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the table of README: where a container's rule is, and the status of its call, without the wrapper and with it. Each cell is
# played: the host has the rules of a real Kubernetes node in one backend; the image is Debian's, less what it does not have; the call
# is iptables-restore. IPTABLES_WRAPPER is another program than bin/iptables-wrapper.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."
# shellcheck source=test/contain.sh
. test/contain.sh

table() {
	scratch=$(mktemp -d)
	trap 'rmdir "$scratch"' EXIT
	echo '| your hosts use | your image has | without the wrapper | with it |'
	echo '| --- | --- | --- | --- |'
	local host image without with
	for host in nft legacy; do
		for image in nft legacy both; do
			without=$(contained "$self" "$host" "$image" without "$scratch")
			with=$(contained "$self" "$host" "$image" with "$scratch")
			echo "| $host | $image | $without | $with |"
		done
	done
}

cell() { # HOST IMAGE WRAPPER DIR
	local host=$1 image=$2 wrapper=$3 dir=$4 program=$2 status=0 found='' said backend
	contain "$dir"
	"iptables-$host-restore" <test/rules/nodes/kind-node.save
	mkdir /run/host # whose programs are others than the container's
	cp /usr/sbin/xtables-{nft,legacy}-multi /run/host/
	if [ "$image" = both ]; then
		program=nft # which Debian prefers
	else
		rm "/usr/sbin/xtables-$(other "$image")-multi" /usr/sbin/ip{,6}tables-"$(other "$image")"{,-save,-restore}
		update-alternatives --quiet --remove iptables "/usr/sbin/iptables-$(other "$image")"
	fi
	ln -sf "/usr/sbin/iptables-$program-restore" /etc/alternatives/iptables-restore
	if [ "$wrapper" = with ]; then
		cp "${IPTABLES_WRAPPER:-bin/iptables-wrapper}" /usr/sbin/iptables-wrapper
		iptables-wrapper install >/dev/null 2>&1
	fi
	said=$(printf '*filter\n-A FORWARD -s 192.0.2.1 -j ACCEPT\nCOMMIT\n' | iptables-restore --noflush 2>&1) || status=$?
	for backend in nft legacy; do
		"/run/host/xtables-$backend-multi" iptables-save 2>/dev/null | grep 192.0.2.1 >/dev/null && found+=" $backend"
	done
	case "$found, status $status" in
	" $host, status 0") echo right ;;
	" $(other "$host"), status 0") echo "**wrong**, status 0" ;;
	", status "[1-9]*) echo "status $status$(grep -q ': try: ' <<<"$said" && echo ', and what to do')" ;;
	*) echo "rule in${found:- nowhere}, status $status: $said" ;;
	esac
}

if (($#)); then
	cell "$@"
else
	table
fi
