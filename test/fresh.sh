#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Runs "make demo" and "make test" in a clone of this repository's last commit, as a user of a Debian or Ubuntu that was just
# installed does it, with sudo: fresh.sh SUITE [OPTION OF MMDEBSTRAP...]. There, it finds git, make, sudo and Go, and empty caches.
# Before each line, it prints the seconds since then. With CI set, a test that cannot run is a failure. Go, the name servers and the
# trusted certificates are copies of this machine's. Debian's keys are in the package debian-archive-keyring, Ubuntu's in
# ubuntu-keyring, which Debian 12 does not have; --keyring=FILE is another place.
set -euo pipefail

# On the machine: a root with nothing more than apt, and mounts that end with their namespace.
outside() {
	local suite=${1:?usage: fresh.sh SUITE [OPTION OF MMDEBSTRAP...]} repository goroot
	shift
	"$(dirname "$self")/tools.sh" test
	repository=$(git -C "$(dirname "$self")" rev-parse --show-toplevel)
	goroot=$(go env GOROOT)
	scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/fresh-$suite-XXXXXX")
	trap remove EXIT
	local root=$scratch/root
	mmdebstrap --quiet --variant=apt --components=main,universe --aptopt='Acquire::Check-Valid-Until "false"' \
		--include=ca-certificates,git,make,sudo,passwd "$@" "$suite" "$root"
	cp -L --remove-destination /etc/resolv.conf /etc/hosts "$root/etc"
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
	cp -r "$goroot" "$root/usr/local/go"
	chroot "$root" useradd --create-home somebody
	echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/somebody"
	git clone --quiet --no-hardlinks "$repository" "$root/home/somebody/iptables-wrappers"
	chroot "$root" chown -R somebody: /home/somebody
	cp "$self" "$root/fresh.sh"
	printf '%s, %s processors, load %s\n' "$suite" "$(nproc)" "$(cut -d' ' -f1-3 /proc/loadavg)"
	unshare --mount --pid --fork --kill-child --propagation private "$self" --mount "$root" ${CI:+"CI=$CI"}
}

# Nothing is mounted below the root in this namespace, unless somebody else did it.
remove() {
	! grep -qF " $scratch/" /proc/self/mountinfo || { echo "something is mounted in $scratch" >&2 && exit 1; }
	rm -rf --one-file-system "$scratch"
}

# In namespaces of its own: what a machine mounts when it starts, and nothing else of this one.
mounts() {
	local root=$1
	mount --bind "$root" "$root"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs -o mode=1777 none "$root/dev/shm"
	mount --rbind /sys "$root/sys"
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=755 none "$root/run"
	cd "$root"
	mount --move . / # so that it is no chroot, where no user namespace can be made
	local path=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	exec chroot . env -i HOME=/home/somebody TERM=dumb PATH=$path "${@:2}" runuser -u somebody -- bash /fresh.sh --inside
}

# What the README and CONTRIBUTING.md say.
inside() {
	cd ~/iptables-wrappers
	local target status=0
	for target in demo test; do
		printf '%4d make %s\n' "$SECONDS" "$target"
		sudo --preserve-env=CI env "PATH=$PATH" make "$target" 2>&1 | stamp || status=1
	done
	printf '%4d status %d, load %s\n' "$SECONDS" "$status" "$(cut -d' ' -f1-3 /proc/loadavg)"
	return "$status"
}

stamp() {
	local line
	while IFS= read -r line; do
		printf '%4d %s\n' "$SECONDS" "$line"
	done
}

self=$(realpath "$0")
case ${1-} in
--mount) mounts "${@:2}" ;;
--inside) inside ;;
*) outside "$@" ;;
esac
