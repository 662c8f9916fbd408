# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Makes the host of a row, whose fields are in the environment, inside a container of its own.

# load BACKEND RULES CHAINS: rules as kube-proxy writes them. A built-in chain refers to the first chain.
load() {
	local restore=iptables-$1-restore address=10.%d.%d.%d/32
	(($2)) || return 0
	[ "$ipv6" = false ] || restore=ip6tables-$1-restore address=fd00::%d:%d:%d/128
	awk -v rules="$2" -v chains="$3" -v address="$address" 'BEGIN {
		print "*nat"
		for (i = 0; i < chains; i++) print ":KUBE-SVC-" i " - [0:0]"
		print "-A PREROUTING -j KUBE-SVC-0"
		rules--
		for (i = 0; i < rules; i++)
			printf "-A KUBE-SVC-%d -d " address " -p tcp -m comment --comment \"ns/svc-%d cluster IP\" -m tcp --dport 80 -j RETURN\n",
				i % chains, i / 65536, i / 256 % 256, i % 256, i
		print "COMMIT"
	}' | "$restore"
}
load nft "$nft" "$nft_chains"
load legacy "$legacy" "$legacy_chains"
if [ "$program" = true ]; then
	"iptables-$backend" -N DOCKER-USER
	"iptables-$backend" -A FORWARD -j DOCKER-USER
fi
[ "$hint" = false ] || "iptables-$backend" -t mangle -N KUBE-IPTABLES-HINT

mkdir /run/upper /run/work /run/mounts
for ((i = 0; i < mounts; i++)); do
	mkdir "/run/mounts/$i"
	mount -t tmpfs none "/run/mounts/$i"
done

# The layout of install, for each wrapper.
mount -t overlay -o "lowerdir=$layer:/usr/sbin,upperdir=/run/upper,workdir=/run/work" overlay /usr/sbin
for dir in /usr/sbin /usr/sbin/before; do
	if [ -e $dir/iptables-wrapper ]; then
		for name in ip{,6}tables{,-save,-restore}; do
			ln -sfn iptables-current "$dir/$name"
		done
		ln -s iptables-wrapper $dir/iptables-current
	fi
done
[ "$read_only" = false ] || mount -o remount,bind,ro /usr/sbin

# enter CONTROLLER FILE VALUE FILE VALUE: move the process that measures into a control group, of version 2 or 1.
enter() {
	local dir=/sys/fs/cgroup/$group
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		echo "+$1" >/sys/fs/cgroup/cgroup.subtree_control
		mkdir -p "$dir"
		echo "$3" >"$dir/$2"
	else
		dir=/sys/fs/cgroup/$1/$group
		mkdir -p "$dir"
		echo "$5" >"$dir/$4"
	fi
	echo $PPID >"$dir/cgroup.procs"
}
((!percent)) || enter cpu cpu.max "$((percent * 1000)) 100000" cpu.cfs_quota_us $((percent * 1000))
((!mib)) || enter memory memory.max "${mib}M" memory.limit_in_bytes "${mib}M"
