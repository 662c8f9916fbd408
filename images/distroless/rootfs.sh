#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Makes a root file system of the iptables package, in the directory that it is given: its two programs, its extensions,
# the libraries that these load, and for scanners the packages that they are from, with their licenses.
set -euo pipefail
root=$1

# With merged directories and without.
mkdir -p "$root"/{dev,etc,proc,run,sys,tmp,usr,var/lib/dpkg/status.d}
chmod 1777 "$root/tmp"
for link in /bin /sbin /lib /lib64 /usr/lib64; do
	if [ -L "$link" ]; then
		cp -a "$link" "$root$link"
	fi
done

programs=(/usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi)
mapfile -t extensions < <(find /usr/lib -path '*/xtables/*')
mapfile -t libraries < <(ldd "${programs[@]}" "${extensions[@]}" 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*' | grep -v ':$' | sort -u)
files=(/etc/os-release /etc/debian_version /etc/passwd /etc/group /etc/protocols /etc/services /etc/ethertypes)

# Copies a file and what it is a link to, and prints their paths, as they are where directories are merged.
put() {
	local path=$1
	[ -e "$path" ] || return 0
	path=$(realpath "$(dirname "$path")")/$(basename "$path")
	mkdir -p "$root$(dirname "$path")"
	cp -a "$path" "$root$path"
	echo "$path"
	[ -L "$path" ] || return 0
	local target
	target=$(readlink "$path")
	[[ $target = /* ]] || target=$(dirname "$path")/$target
	put "$target"
}
mapfile -t paths < <(for path in "${programs[@]}" "${extensions[@]}" "${libraries[@]}" "${files[@]}"; do put "$path"; done)
# All at once, which matters under an emulator. Not all of them belong to a package, and dpkg may know them without /usr.
packages=$({ dpkg -S "${paths[@]}" "${paths[@]#/usr}" 2>/dev/null || true; } | sed '/^diversion by /d; s/: .*//; s/, /\n/g' | sort -u)

for package in $packages; do
	name=${package%:*}
	dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$name"
	mkdir -p "$root/usr/share/doc/$name"
	cp -L "/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/"
done

# The texts that the licenses refer to.
mkdir -p "$root/usr/share"
cp -a /usr/share/common-licenses "$root/usr/share/"

# The lock, which cannot be created on a read-only root.
install -m 600 /dev/null "$root/run/xtables.lock"
