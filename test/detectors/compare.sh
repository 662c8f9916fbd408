#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the table of docs/evidence/detectors.md: how other projects find the host's backend, each asked on the same hosts. Their
# scripts are fetched from GitHub, by commit, and run in namespaces, which changes nothing on this machine. Run it as root, with
# iptables of both backends, nftables, and the wrapper built by "make build":
#
#   test/detectors/compare.sh
#
#   SCRIPTS=DIR    a directory with REPOSITORY/COMMIT/FILE, as raw.githubusercontent.com has them, instead of that
#   MIRROR=DIR     a directory with the git directories OWNER+NAME/repo, instead of that
#   PROGRAMS=DIR   the detectors that are Go: v3, istio, tailscale, gluetun. The page says what each program does
#   ONLY=PATTERN   hosts whose name matches
set -euo pipefail
here=$(dirname "$(realpath "$0")")
cd "$here/../.."

wrapper=${IPTABLES_WRAPPER:-$PWD/bin/iptables-wrapper}
[ -x "$wrapper" ] || { echo "$wrapper is missing: make build" >&2; exit 1; }
((EUID == 0)) || { echo "run it as root: it makes namespaces" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
mkdir "$scratch/programs" "$scratch/mounts"
cp "$wrapper" "$scratch/programs/ours"
cp test/nodes/*.save test/nodes/*.ipset "$scratch"
cp -r test/nodes/*/ "$scratch" 2>/dev/null || true

# fetch REPOSITORY COMMIT FILE: prints a file of another project.
fetch() {
	if [ -n "${MIRROR:-}" ]; then
		git -C "$MIRROR/${1/\//+}/repo" show "$2:$3"
	elif [ -n "${SCRIPTS:-}" ]; then
		cat "$SCRIPTS/$1/$2/$3"
	else
		curl --fail --silent --show-error --location "https://raw.githubusercontent.com/$1/$2/$3"
	fi
}

detectors=(ours)
while read -r name repository commit file; do
	case $name in '#'*) continue ;; esac
	fetch "$repository" "$commit" "$file" >"$scratch/programs/$name"
	detectors+=("$name")
done <"$here/sources"
for name in v3 istio tailscale gluetun; do
	[ ! -x "${PROGRAMS:-/nonexistent}/$name" ] || cp "$PROGRAMS/$name" "$scratch/programs/$name"
	detectors+=("$name")
done

# ask DETECTOR SETUP: what it answers on a host that the commands of SETUP have made.
ask() {
	if [ ! -e "$scratch/programs/$1" ]; then
		echo '–'
		return
	fi
	timeout 60 unshare --net --mount --ipc --pid --fork --mount-proc "$here/decide.sh" "$scratch" "$1" "$2" 2>>"$scratch/errors" || echo fails
}

# row NAME RIGHT SETUP: adds a host to the table. RIGHT is nft, legacy, or "either" where no rules show it.
row() {
	[[ $1 =~ ${ONLY:-.} ]] || return 0
	local detector answer cells='' ours='' rank=3
	for detector in "${detectors[@]}"; do
		answer=$(ask "$detector" "$3")
		case $answer in
		"$2" | "$2?" | –) ;;
		*) [ "$2" = either ] || answer="**$answer**" ;;
		esac
		[ "$detector" != ours ] || ours=$answer
		cells+=" | $answer"
	done
	case $ours in
	'**'*) rank=1 ;;
	*'?') rank=2 ;;
	esac
	printf '%s\t| %s | %s%s |\n' "$rank" "$1" "$2" "$cells" >>"$scratch/rows"
	echo "$1" >&2
}

. "$here/hosts.sh"

if [ -n "${KEEP_ERRORS:-}" ]; then cp "$scratch/errors" "$KEEP_ERRORS"; fi
title=${detectors[*]}
printf '| host | right | %s |\n' "${title// / | }"
printf '| --- | ---%s |\n' "$(printf ' | ---%.0s' "${detectors[@]}")"
sort -s -k 1,1n "$scratch/rows" | cut -f 2-
