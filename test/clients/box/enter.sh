# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Turns the namespaces that it is started in into a container, and becomes its first process.
# ROOTFS: Debian. EMPTY: an empty directory. NODES: nodes' rules. MODULE: this module. BIN: programs. OUT: a directory for the results.
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$EMPTY"
mkdir "$EMPTY"/upper "$EMPTY"/work "$EMPTY"/root
mount -t overlay overlay -o "lowerdir=$ROOTFS,upperdir=$EMPTY/upper,workdir=$EMPTY/work" "$EMPTY/root"
cd "$EMPTY/root"
mkdir -p test/module test/nodes test/bin test/out
mount --bind "$BIN" test/bin
mount --bind "$MODULE" test/module
mount --bind "$NODES" test/nodes
mount --bind "$OUT" test/out
mount -t proc proc proc
mount -t sysfs sysfs sys
[ ! -e /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev # as runtimes mount it
for device in null zero full random urandom tty net/tun; do
	[ "$device" != net/tun ] || mkdir dev/net
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
# Nothing of this machine stays mounted except results and read-only sources, so the clients cannot change it.
pivot_root . .
umount -l .
cd /
mount -o remount,bind,ro /test/module
mount -o remount,bind,ro /test/nodes
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
exec /bin/bash /test/module/box/run.sh
