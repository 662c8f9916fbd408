# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The same as linkerd lays out its image and its pod: the program is process 1, not root but of root's group, and has no
# capabilities but the two that iptables' files carry.

. /test/module/agents/linkerd.sh

setup() {
	setcap cap_net_admin,cap_net_raw+eip /usr/sbin/xtables-nft-multi
	setcap cap_net_admin,cap_net_raw+eip /usr/sbin/xtables-legacy-multi
}

# The wrapper's file needs them, too, or install would refuse.
wrap() {
	cp /test/bin/iptables-wrapper /usr/sbin/iptables-wrapper
	setcap cap_net_admin,cap_net_raw+eip /usr/sbin/iptables-wrapper
	iptables-wrapper install >/dev/null
}

# Linkerd mounts an empty volume on /run, for the lock of iptables-legacy.
container() {
	unshare --pid --fork --mount --mount-proc sh -c 'mount -t tmpfs -o mode=1777 tmpfs /run && exec "$@"' sh \
		setpriv --reuid=65534 --regid=0 --clear-groups --bounding-set=-all,+net_admin,+net_raw --inh-caps=-all "$@"
}
