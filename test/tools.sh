#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Installs the programs that the tests and the demonstration call, where they are missing.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
declare -A package=(
	[xtables-nft-multi]=iptables [xtables-legacy-multi]=iptables [nft]=nftables [ipset]=ipset [ip]=iproute2
	[strace]=strace [capsh]=libcap2-bin [setpriv]=util-linux [unshare]=util-linux
	[zsh]=zsh [fish]=fish
	[podman]=podman [runc]=runc [mmdebstrap]=mmdebstrap
	[qemu-system-x86_64]=qemu-system-x86 [qemu-s390x-static]=qemu-user-static [depmod]=kmod [xz]=xz-utils
)
missing=()
for program in "${!package[@]}"; do
	command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
# mmdebstrap wants it for other suites than the machine's own.
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
((${#missing[@]})) || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]} (Debian's names for them); please install them" >&2
	exit 1
fi
if ((EUID)); then
	echo "missing packages; please run: sudo apt-get install ${missing[*]}" >&2
	exit 1
fi
echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && apt-get install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
