# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A host, which is the network namespace that this shell is in, and a container on it. The script is read into a shell of its
# own: unshare --net sh. Each function takes one text of commands.
D=$(mktemp -d)
# Below each image: this machine's root, with what test/host has put over it.
UPPER=$(sed -n 's|.* /usr/sbin .*upperdir=\([^,]*\)/usr/sbin,.*|\1|p' /proc/self/mountinfo | tail -n 1)
LAYERS=${TMPDIR:-/tmp}/layers
test -d "$LAYERS" || { cp -a "$UPPER" "$D/base" && mkdir "$D/layers" && mv "$D/base" "$D/layers" && mv -T "$D/layers" "$LAYERS"; } 2>/dev/null
layers=$LAYERS/base built=
ip link add node0 type veth peer name node1 # not a Pod's network
mkdir "$D/volume" "$D/devices" && : >"$D/xtables.lock"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom "$D/devices" && ln -s pts/ptmx "$D/devices/ptmx"
export DEVICES="$D/devices/null $D/devices/zero $D/devices/full $D/devices/random $D/devices/urandom $D/devices/ptmx"

# The settings of a container.
defaults() {
	root=rw run=rw lock=host pid=own net=host volume= empty= variable= exec= privileges=
	path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	user='' ambient=''
	docker=+net_raw,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot,+mknod,+audit_write,+setfcap
	caps=$docker,+net_admin
}
defaults

# host: on the node, and not waiting for a container.
host() { XTABLES_LOCKFILE="$D/host.lock" sh -c "$1" </dev/null; }

# tree: the root of a container below $c, as runc makes it, and its process 1.
tree='
mount -t overlay -o $root,lowerdir=$layers:/,upperdir=$c/upper,workdir=$c/work none $c/root
read P rest </proc/self/stat; echo $P >$c/pid
cd $c/root
if test $pid = own; then mount -t proc none proc; else mount --bind /proc proc; fi
mount -t tmpfs -o mode=755 none dev
cp -a $DEVICES dev/
mount -t tmpfs -o mode=755 none run; mount -t tmpfs none tmp
case $lock in host) : >run/xtables.lock; mount --bind $D/xtables.lock run/xtables.lock ;; directory) mkdir run/xtables.lock ;; esac
test $run = rw || mount -o remount,ro none run
test -z "$empty" || mount -t tmpfs -o mode=755 none ".$empty"
test -z "$volume" || { mount --bind $D/volume usr/local/sbin; mount -o remount,bind,$volume usr/local/sbin; }
'

# image: RUN in an image that is made of the last one. Equal images are made once.
image() {
	built="$built$1;"
	key=$(md5sum <<-END
		$built
		END
	)
	key=$LAYERS/${key%% *}
	if ! test -d "$key"; then
		c=$(mktemp -d "$D/build.XXXX") && mkdir "$c/upper" "$c/work" "$c/root"
		(defaults; export c D layers root run lock pid volume empty
		unshare --mount --net --ipc --pid --fork sh -ec "$tree"'exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec "$1"' sh "$1" </dev/null) || return
		mv -T "$c/upper" "$key" 2>/dev/null
	fi
	layers=$key:$layers
}

# start: a new container with these settings, instead of the last one.
start() {
	stop
	c=$(mktemp -d "$D/run.XXXX") && mkdir "$c/upper" "$c/work" "$c/root" && mkfifo "$c/ready"
	launch
}
# restart: the same container again, with what it has written, as docker restart does it.
restart() {
	stop
	launch
}
launch() {
	amb=; test -z "$ambient" || for a in +net_admin +net_raw; do case $caps in *$a*) amb=$amb,$a ;; esac; done
	rights="--bounding-set=-all,$caps --inh-caps=-all$amb ${amb:+--ambient-caps=${amb#,}} $privileges $user"
	export c D layers root run lock pid volume empty path variable rights
	flags=--mount; test $pid = host || flags="$flags --pid"; test $net = host || flags="$flags --net"
	unshare $flags --ipc --fork --kill-child sh -ec 'exec 3>$c/ready;'"$tree"'exec chroot . env -i PATH=$path $variable /usr/bin/setpriv $rights /bin/sh -c "echo >&3; exec 3>&- /bin/sleep 1000"' </dev/null &
	U=$! P=
	read ready <"$c/ready" && P=$(cat "$c/pid")
}
# stop: ends process 1, which does not end with unshare if it has changed its user, and waits until its mounts are gone:
# no two overlays may have the same upper directory.
stop() {
	test -n "${U-}" || return 0
	{ kill -KILL "$U" $P; wait "$U"; } 2>/dev/null
	while test -n "$P" && readlink "/proc/$P/ns/mnt" >/dev/null; do sleep 0.01; done
	U= P=
}
client= server=
trap 'stop; test -z "$client" || kill -KILL $client $server; rm -rf --one-file-system "$D"' EXIT

# network: on the node, two neighbors between which it forwards. They end with this shell.
network() {
	for n in client server; do
		unshare --net --kill-child=KILL --fork sh -c 'echo ready; exec sleep 1000' >"$D/$n" &
		eval "$n=$!"
		until grep -q ready "$D/$n"; do sleep 0.01; done
	done
	client=$(pgrep -P "$client") server=$(pgrep -P "$server")
	ip link add toclient type veth peer name eth0 netns "$client"
	ip link add toserver type veth peer name eth0 netns "$server"
	ip addr add 10.1.0.1/24 dev toclient && ip link set toclient up
	ip addr add 10.2.0.1/24 dev toserver && ip link set toserver up
	nsenter --target "$client" --net sh -c 'ip addr add 10.1.0.2/24 dev eth0; ip link set eth0 up; ip route add default via 10.1.0.1'
	nsenter --target "$server" --net sh -c 'ip addr add 10.2.0.2/24 dev eth0; ip link set eth0 up; ip route add default via 10.2.0.1'
	echo 1 >/proc/sys/net/ipv4/ip_forward
}
# inside: in the container, as kubectl exec does it. With exec=system, that has another PATH than process 1.
inside() {
	p=$path; test "$exec$pid" != systemown || p=/usr/sbin:/usr/bin:/sbin:/bin
	within "$p" "$1"
}
# client: in the container, as process 1 would do it.
client() { within "$path" "$1"; }
within() {
	nsenter --target "$P" --mount --ipc --pid --net --root --wd env -i PATH="$1" $variable /usr/bin/setpriv $rights /bin/sh -c "$2" </dev/null
}
