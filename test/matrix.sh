#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the table of README: where a container's rule is, and the status of its call, without the wrapper and with it. Each cell is
# played: the host has the rules of a real Kubernetes node in one backend; the image is Debian's, less what it does not have; the call
# is iptables-restore, the first one without the wrapper. IPTABLES_WRAPPER is another program than bin/iptables-wrapper.
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
	local host image
	for host in nft legacy; do
		for image in nft legacy both; do
			contained "$self" "$host" "$image" "$scratch"
		done
	done
}

row() { # HOST IMAGE DIR
	local host=$1 image=$2 program=$2 unwanted
	contain "$3"
	"iptables-$host-restore" <test/rules/nodes/kind-node.save
	cp /usr/sbin/xtables-{nft,legacy}-multi /run/ # for the host's side
	if [ "$image" = both ]; then
		program=nft # which Debian prefers
	else
		unwanted=$(other "$image")
		rm "/usr/sbin/xtables-$unwanted-multi" /usr/sbin/ip{,6}tables-"$unwanted"{,-save,-restore}
		update-alternatives --quiet --remove iptables "/usr/sbin/iptables-$unwanted"
	fi
	ln -sf "/usr/sbin/iptables-$program-restore" /etc/alternatives/iptables-restore
	echo -n "| $host | $image | $(cell 192.0.2.1)"
	cp "${IPTABLES_WRAPPER:-bin/iptables-wrapper}" /usr/sbin/iptables-wrapper
	iptables-wrapper install >/dev/null 2>&1
	echo " | $(cell 192.0.2.2) |"
}

cell() { # ADDRESS
	local status=0 found='' said backend
	said=$(printf '*filter\n-A FORWARD -s %s -j ACCEPT\nCOMMIT\n' "$1" | iptables-restore --noflush 2>&1) || status=$?
	for backend in nft legacy; do
		[[ $("/run/xtables-$backend-multi" iptables-save 2>/dev/null) != *" $1/32 "* ]] || found+=" $backend"
	done
	case "$found, status $status" in
	" $host, status 0") echo right ;;
	" $(other "$host"), status 0") echo "**wrong**, status 0" ;;
	", status "[1-9]*)
		[[ $said != *": try: "* ]] || status+=', and what to do'
		echo "status $status"
		;;
	*) echo "rule in${found:- nowhere}, status $status: $said" ;;
	esac
}

if (($#)); then
	row "$@"
else
	table
fi
