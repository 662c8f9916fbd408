#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Plays a host with each backend, with the rules of a real Kubernetes node, and on it a container without the wrapper and one with it,
# in private namespaces, so that it does not change this machine. The status is 1 unless only the one with it is right. Called by
# "make demo", which builds the wrapper and installs iptables first.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."
# shellcheck source=test/contain.sh
. test/contain.sh

bold=$'\e[1m' plain=$'\e[0m'
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || bold='' plain=''
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '$ %s\n' "$*"; eval "$*"; }

# Each container's last line goes to the verdict, which is descriptor 3.
demo() {
	if ((EUID)); then
		echo "the demonstration makes namespaces and mounts of its own:" 'sudo env "PATH=$PATH" make demo' >&2
		exit 1
	fi
	scratch=$(mktemp -d)
	trap 'rm -f "$scratch/verdict" && rmdir "$scratch/mounts" "$scratch"' EXIT
	mkdir "$scratch/mounts"
	exec 3>"$scratch/verdict"
	local backend container
	for backend in legacy nft; do
		for container in without_wrapper with_wrapper; do
			contained "$self" "$container" "$backend" "$scratch/mounts"
		done
	done
	say "Verdict: where that iptables-restore has put the rule"
	cat "$scratch/verdict"
	case $(sed 's/.* //' "$scratch/verdict" | tr '\n' ' ') in
	"wrong right wrong right ") echo "With the wrapper, in the backend of both hosts. Without it, in the other one, with status 0." ;;
	*) echo "That is not what should have happened." && exit 1 ;;
	esac
}

host() {
	say "A host that uses $backend: the rules of a kind node, loaded with iptables-$backend"
	show "iptables-$backend-restore <test/rules/nodes/kind-node.save"
}

restore() {
	status=0
	show 'printf "*filter\n-A FORWARD -s 192.0.2.1 -m comment --comment demo -j DROP\nCOMMIT\n" | iptables-restore --noflush' || status=$?
	echo "(status $status)"
}

# verdict IMAGE WRAPPER: shows where the rule is.
verdict() {
	local saved found='' result=failed
	say "Where the rule is"
	for saved in legacy nft; do
		show "iptables-$saved-save -t filter 2>/dev/null | grep demo" && found+=" $saved" || echo "(nothing)"
	done
	case "$status$found" in
	"0 $backend") result=right ;;
	"0 $(other "$backend")") result=wrong ;;
	esac
	printf '  host: %-8s image: %-8s %-17s rule:%-8s %s\n' "$backend" "$1" "$2" "${found:- nowhere}" "$result" >&3
}

without_wrapper() {
	local image
	image=$(other "$backend")
	contain "$scratch"
	host
	say "A container that shares its network namespace. Its image has the other backend, and no wrapper"
	show "ln -sf xtables-$image-multi /usr/sbin/iptables-restore"
	restore
	verdict "$image" "without wrapper,"
}

links() { (cd /usr/sbin && for n in ip{,6}tables{,-save,-restore}; do printf '  %-18s resolves to %s\n' "$n" "$(readlink -f "$n")"; done); }

with_wrapper() {
	contain "$scratch"
	host
	say "A container with the wrapper, which is put into the image with two commands"
	show "cp ${IPTABLES_WRAPPER:-bin/iptables-wrapper} /usr/sbin/iptables-wrapper"
	show 'iptables-wrapper install >/dev/null'
	links
	say "What it finds in the kernel"
	show 'iptables-wrapper detect -o table'
	say "The first call: the same iptables-restore"
	restore
	say "Later calls bypass the wrapper"
	links
	verdict both "with wrapper,"
}

case ${1-} in
with_wrapper | without_wrapper)
	backend=$2 scratch=$3
	"$1"
	;;
*) demo ;;
esac
