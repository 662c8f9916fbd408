#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Plays a host in each mode, with the rules of a real Kubernetes node, in private namespaces, so that it does not change this
# machine. Called by "make demo", which builds the wrapper and installs iptables first.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

if [ "${1:-}" != inside ]; then
	if ((EUID)); then
		echo "the demonstration makes namespaces and mounts of its own:" 'sudo env "PATH=$PATH" make demo' >&2
		exit 1
	fi
	scratch=$(mktemp -d)
	trap 'rmdir "$scratch"' EXIT
	for mode in legacy nft; do
		unshare --net --mount --pid --fork --mount-proc "$self" inside "$mode" "$scratch"
	done
	exit 0
fi

mode=$2 scratch=$3
bold=$'\e[1m' plain=$'\e[0m'
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || bold='' plain=''
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '$ %s\n' "$*"; eval "$*"; }
links() { (cd /usr/sbin && for n in ip{,6}tables{,-save,-restore}; do printf '  %-18s resolves to %s\n' "$n" "$(readlink -f "$n")"; done); }

# A container: its own /usr/sbin and /run, and what update-alternatives writes to.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs none "$scratch"
for dir in /usr/sbin /etc/alternatives /var/lib/dpkg /var/log; do
	mkdir -p "$scratch/upper$dir" "$scratch/work$dir"
	mount -t overlay overlay -o "lowerdir=$dir,upperdir=$scratch/upper$dir,workdir=$scratch/work$dir" "$dir"
done
mount --rbind /dev /dev && mount -o remount,bind,ro /dev # no record is made in that of this machine
mount -t tmpfs none /run # last, because TMPDIR may be below it

say "A host in $mode mode: the rules of a kind node, loaded with iptables-$mode"
show "iptables-$mode-restore <test/rules/nodes/kind-node.save"

say "A container that shares its network namespace. The wrapper is put into the image with two commands"
show "cp ${IPTABLES_WRAPPER:-bin/iptables-wrapper} /usr/sbin/iptables-wrapper"
show 'iptables-wrapper install >/dev/null'
links

say "What it finds in the kernel"
show 'iptables-wrapper detect -o table'

say "The first call: iptables-restore, from standard input"
show 'printf "*filter\n-A FORWARD -s 192.0.2.1 -m comment --comment demo -j DROP\nCOMMIT\n" | iptables-restore --noflush'

say "Later calls bypass the wrapper"
links

say "The rule is where the host's rules are, and not in the other backend"
show "iptables-$mode-save -t filter | grep demo"
other=nft
[ "$mode" = nft ] && other=legacy
if "iptables-$other-save" 2>/dev/null | grep demo; then
	echo "the rule is in $other too" >&2
	exit 1
fi
