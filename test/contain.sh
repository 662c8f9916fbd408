# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# For demo.sh and matrix.sh.

# contained PROGRAM ARGUMENTS...: in a container that is its own host.
contained() { unshare --net --mount --pid --fork --mount-proc "$@"; }

# contain DIR: a container's own /usr/sbin and /run, and what update-alternatives writes to. DIR is an empty directory for the mounts.
contain() {
	PATH=/usr/sbin:/usr/bin:/sbin:/bin
	local dir
	mount -t tmpfs none "$1"
	mkdir -p "$1"/{upper,work}{/usr/sbin,/etc/alternatives,/var/lib/dpkg,/var/log}
	for dir in /usr/sbin /etc/alternatives /var/lib/dpkg /var/log; do
		mount -t overlay overlay -o "lowerdir=$dir,upperdir=$1/upper$dir,workdir=$1/work$dir" "$dir"
	done
	mount --rbind /dev /dev && mount -o remount,bind,ro /dev # no record is made in that of this machine
	mount -t tmpfs none /run # last, because TMPDIR may be below it
}

other() { if [ "$1" = nft ]; then echo legacy; else echo nft; fi; }
