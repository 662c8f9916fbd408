#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Runs what README says in a clone of this repository's last commit, as an ordinary user of a Debian or Ubuntu that was just installed
# does it: fresh.sh SUITE [OPTION OF MMDEBSTRAP...]. There, it finds git, make, sudo and Go, and empty caches. With AS=root, root does
# it, without sudo. Before each line, it prints the seconds since then, and at the end, how much was received. With CI set, a test that
# cannot run is a failure. Go is a copy of this machine's, or with --include=golang-go that of the suite. The name servers and the
# trusted certificates are copies, too. Debian's keys are in the package debian-archive-keyring, Ubuntu's in ubuntu-keyring, which
# Debian 12 does not have; --keyring=FILE is another place.
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
	[ -e "$root/usr/bin/go" ] || cp -r "$goroot" "$root/usr/local/go"
	chroot "$root" useradd --create-home somebody
	printf '%s\n' 'somebody ALL=(ALL) NOPASSWD: ALL' 'Defaults env_keep += CI' >"$root/etc/sudoers.d/somebody"
	local user=${AS:-somebody} home
	home=$(chroot "$root" sh -c "echo ~$user")
	git clone --quiet --no-hardlinks "$repository" "$root$home/iptables-wrappers"
	chroot "$root" chown -R "$user:" "$home"
	cp "$self" "$root/fresh.sh"
	printf '%s, %s, %s processors, load %s\n' "$suite" "$user" "$(nproc)" "$(cut -d' ' -f1-3 /proc/loadavg)"
	unshare --mount --pid --fork --kill-child --propagation private "$self" --mount "$root" "$user" "HOME=$home" ${CI:+"CI=$CI"}
}

# Nothing is mounted below the root in this namespace, unless somebody else did it.
remove() {
	! grep -qF " $scratch/" /proc/self/mountinfo || { echo "something is mounted in $scratch" >&2 && exit 1; }
	rm -rf --one-file-system "$scratch"
}

# In namespaces of its own: what a machine mounts when it starts, and nothing else of this one.
mounts() {
	local root=$1 user=$2
	mount --bind "$root" "$root"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs -o mode=1777 none "$root/dev/shm"
	mount --rbind /sys "$root/sys"
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=755 none "$root/run"
	cd "$root"
	mount --move . / # so that it is no chroot, where no user namespace can be made
	local path=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	exec chroot . env -i TERM=dumb PATH=$path "${@:3}" runuser -u "$user" -- bash /fresh.sh --inside
}

# The lines of README.
inside() {
	cd ~/iptables-wrappers
	local lines line before status=0
	mapfile -t lines < <(sed -n 's/^    \(sudo .* make [a-z]*\).*/\1/p' README.md)
	((${#lines[@]})) || { echo "README says no command" >&2 && return 1; }
	before=$(received)
	for line in "${lines[@]}"; do
		((EUID)) || line=make${line#*make}
		printf '%4d %s\n' "$SECONDS" "$line"
		eval "$line" 2>&1 | stamp || status=1
		printf '%4d received: %d MB\n' "$SECONDS" $((($(received) - before) / 1000000))
	done
	printf '%4d status %d, load %s\n' "$SECONDS" "$status" "$(cut -d' ' -f1-3 /proc/loadavg)"
	return "$status"
}

# Bytes that this machine's interfaces have received, whoever asked for them.
received() { awk '!/lo:/ && sub(/.*:/, "") { sum += $1 } END { print sum }' /proc/net/dev; }

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
