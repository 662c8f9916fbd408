# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A life of a container: what is on standard input is run in it. $H is what outlives it: /usr/sbin as $IMAGE has it, and /run.
# The programs that $MISSING names are not in it. What is the host's side has them in /run.
mkdir -p "$H/run" "$H/dev"
test -d "$H/sbin" || { cp -al "$IMAGE" "$H/sbin"; cp -al "$IMAGE" "$H/run/host"; rm -f "$H"/sbin/*tables-${MISSING:-no}-*; }
test -e "$H/run/held" || { mkfifo -m 666 "$H/run/held"; : >"$H/run/xtables.lock"; chmod 666 "$H/run/xtables.lock"; }
exec unshare --mount --pid --ipc --fork --kill-child sh -ec '
	mount -t proc none /proc
	mount --bind "$H/sbin" /usr/sbin
	mount --bind "$H/run" /run
	mount -t tmpfs -o mode=755 none "$H/dev"
	cp -a /dev/null /dev/zero /dev/urandom /dev/tty "$H/dev"
	case $DEV in
	own) ln -s pts/ptmx "$H/dev/ptmx" ;; # as runc makes it
	*) mknod "$H/dev/ptmx" c 5 2 ;; # as in the devtmpfs of a host
	esac
	mount --move "$H/dev" /dev
	test $ROOT = rw || mount -o remount,bind,ro /usr/sbin
	cd /
	exec sh'
