#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Asks other projects' detectors, and this one, which backend a host uses, on many hosts, and prints the table of
# docs/evidence/comparison.md. Their scripts are fetched from GitHub, by commit, and run in namespaces, which changes nothing on this
# machine. Run it as root, with iptables of both backends, nftables, ipset, and the wrapper that "make build" makes:
#
#   test/detectors/compare.sh
#
# These variables change what it does:
#
#   MIRROR=DIR      git directories OWNER+NAME/repo, to read the scripts from instead of GitHub
#   PROGRAMS=DIR    the detectors that are Go: v3, istio, tailscale, gluetun. The page says what each program does
#   DETECTORS=ours  those to ask, separated by spaces
#   ONLY=PATTERN    the hosts whose name matches
#   WRITE=yes       puts the table into the page
set -euo pipefail
here=$(dirname "$(realpath "$0")")
cd "$here/../.."

wrapper=${IPTABLES_WRAPPER:-$PWD/bin/iptables-wrapper}
fail() { echo "compare: $*" >&2; exit 1; }
[ -x "$wrapper" ] || fail "$wrapper is missing: make build"
((EUID == 0)) || fail "run it as root: it makes namespaces"
read -ra detectors <<<"${DETECTORS:-ours v2 v3 dind kind klipper-lb istio tailscale k3s-root fail2ban gluetun}"

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
mkdir "$scratch/programs" "$scratch/mounts"
cp "$wrapper" "$scratch/programs/ours"
cp test/rules/nodes/*.save test/rules/nodes/*.ipset test/rules/programs/*.save test/rules/programs/*.save6 test/rules/programs/*.nft "$scratch"

# fetch REPOSITORY COMMIT FILE: prints a file of another project.
fetch() {
	if [ -n "${MIRROR:-}" ]; then
		git -C "$MIRROR/${1/\//+}/repo" show "$2:$3"
	else
		curl --fail --silent --show-error --location "https://raw.githubusercontent.com/$1/$2/$3"
	fi
}

for detector in "${detectors[@]}"; do
	if [ -x "${PROGRAMS:-/nonexistent}/$detector" ]; then
		cp "$PROGRAMS/$detector" "$scratch/programs/"
	fi
	while read -r name repository commit file; do
		if [ "$name" = "$detector" ]; then
			fetch "$repository" "$commit" "$file" >"$scratch/programs/$name"
		fi
	done <"$here/sources"
done

# ask DETECTOR SETUP: what it answers on a host that the commands of SETUP have made.
ask() {
	if [ ! -e "$scratch/programs/$1" ]; then
		echo '–'
		return
	fi
	timeout 60 unshare --net --mount --ipc --pid --fork --mount-proc "$here/decide.sh" "$scratch" "$1" "$2" || echo fails
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

title=${detectors[*]}
{
	printf '| host | right | %s |\n' "${title// / | }"
	printf '| --- | ---%s |\n' "$(printf ' | ---%.0s' "${detectors[@]}")"
	awk -F '|' '{ for (i = 4; i < NF; i++) wrong[i] += $i ~ /\*/ }
		END { printf "| **wrong, of %d** |", NR; for (i = 4; i < NF; i++) printf " | %d", wrong[i]; print " |" }' "$scratch/rows"
	sort -s -k 1,1n "$scratch/rows" | cut -f 2-
} | tee "$scratch/table"
if [ "${WRITE:-}" = yes ]; then
	page=docs/evidence/comparison.md
	sed -i -e '/^<!-- table -->$/,/^<!-- end of table -->$/{//!d}' -e "/^<!-- table -->\$/r $scratch/table" "$page"
	sed -i -e 's/^<!-- table -->$/&\n/' -e 's/^<!-- end of table -->$/\n&/' "$page"
fi
