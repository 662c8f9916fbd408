# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A life of a container: what is on standard input is run in it, and gives the status. $H is a directory for what outlives it:
# the root unless NEW is root or all, and /dev/shm unless it is all. Process 1 is root's or, with INIT=65534, that user's.
case $NEW in
all) rm -rf "$H/sbin" "$H/run" "$H/shm" ;;
root) rm -rf "$H/sbin" "$H/run" ;;
esac
test -d "$H/sbin" || cp -al "$IMAGE" "$H/sbin"
rm -f "$H/end"
mkdir -p "$H/run" "$H/shm" "$H/dev"
case $SHM in plain) chmod 777 "$H/shm" ;; *) chmod 1777 "$H/shm" ;; esac
: >>"$H/run/xtables.lock"
chmod 666 "$H/run/xtables.lock"
status=0
unshare --mount --pid --ipc --fork --kill-child sh -ec '
	mount -t proc none /proc
	mount --bind "$H/sbin" /usr/sbin
	mount --bind "$H/run" /run
	mount -t tmpfs -o mode=755 none "$H/dev"
	cp -a /dev/null /dev/zero /dev/urandom /dev/tty "$H/dev"
	case $DEV in
	own) ln -s pts/ptmx "$H/dev/ptmx" ;; # as runc makes it
	*) mknod "$H/dev/ptmx" c 5 2 ;; # as in the devtmpfs of a host
	esac
	case $SHM in
	absent) ;;
	full) mkdir "$H/dev/shm"; mount -t tmpfs -o mode=1777,nr_inodes=1 none "$H/dev/shm" ;;
	*) mkdir "$H/dev/shm"; mount --bind "$H/shm" "$H/dev/shm" ;;
	esac
	mount --move "$H/dev" /dev
	test $RUN = rw || mount -o remount,bind,ro /run
	test $ROOT = rw || mount -o remount,bind,ro /usr/sbin
	cd /
	test $INIT = 65534 || { sh && exit; exit $?; }
	mkfifo "$H/end"
	exec 3<&0
	{ status=0; sh <&3 || status=$?; echo $status >"$H/status"; } 9>"$H/end" &
	exec setpriv --reuid=65534 --regid="$GROUP" --clear-groups cat <"$H/end"
' || status=$?
test $INIT != 65534 || status=$(cat "$H/status")
exit $status
