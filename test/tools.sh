#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Installs what is missing of the programs that a make target calls: tools.sh demo, test or all.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
declare -A demo=([xtables-nft-multi]=iptables [xtables-legacy-multi]=iptables [unshare]=util-linux [mount]=mount)
declare -A test=(
	[nft]=nftables [ipset]=ipset [ip]=iproute2 [strace]=strace [capsh]=libcap2-bin [setpriv]=util-linux [perl]=perl-base
	[pgrep]=procps [mandoc]=mandoc [script]=bsdutils
	[podman]=podman [runc]=runc [mmdebstrap]=mmdebstrap
	[skopeo]=skopeo [curl]=curl
	[qemu-system-x86_64]=qemu-system-x86 [depmod]=kmod [xz]=xz-utils [cpio]=cpio
)
declare -A all=([qemu-aarch64-static]=qemu-user-static [shellcheck]=shellcheck)

missing=()
need() { # NAME of an array
	local -n package=$1
	local program
	for program in "${!package[@]}"; do
		command -v "$program" >/dev/null || missing+=("${package[$program]}")
	done
}
case ${1-} in
demo) need demo ;;
test) need demo && need test ;;
all) need demo && need test && need all ;;
*) echo "usage: tools.sh demo|test|all" >&2 && exit 2 ;;
esac
# mmdebstrap needs it for other suites than the machine's own.
[ "$1" = demo ] || [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
((${#missing[@]})) || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]} (these are Debian's names); please install them" >&2
	exit 1
fi
if ((EUID)); then
	echo "missing packages; please run: sudo apt-get install ${missing[*]}" >&2
	exit 1
fi
echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C # its messages are printed below
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && apt-get install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
grep -E '^(Need to get|After this operation)' "$log" >&2 || true
