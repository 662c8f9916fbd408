# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# A network in both families, a container with published ports, a restart of the daemon.

volumes=/etc/docker

setup() {
	mkdir -p /etc/docker /var/lib/docker /var/lib/containerd /run/image/bin
	mount -t tmpfs tmpfs /var/lib/docker
	cp /usr/bin/busybox /run/image/bin/
	echo '{"storage-driver": "vfs", "experimental": true, "ip6tables": true, "bip": "172.30.0.1/24"}' >/etc/docker/daemon.json
}

# What dockerd logged about iptables.
said() {
	grep -i 'tables' /var/log/dockerd.log | sed 's/^time=[^ ]* //; s/[0-9a-f]\{64\}/ID/g' >&2
	: >/var/log/dockerd.log
}
start() {
	dockerd --cgroup-parent clients-test >>/var/log/dockerd.log 2>&1 &
	wait_for docker version
	said
}
stop() { kill "$(cat /run/docker.pid)" && wait_for file_gone /run/docker.pid; said; }
restart() { stop && start; }
image() { tar -C /run/image -c . | docker import - busybox >/dev/null; }
network() {
	docker network create --ipv6 --subnet 172.29.0.0/24 --subnet 2001:db8:1::/64 -o com.docker.network.bridge.name=test0 test >/dev/null
	local status=$?
	said
	return $status
}
container() {
	docker run --detach --restart always --stop-signal KILL --name test --network test --ip 172.29.0.2 --ip6 2001:db8:1::2 \
		--publish 8080:80 --publish 53:53/udp busybox /bin/busybox sleep 1000 >/dev/null
	local status=$?
	said
	return $status
}

main() {
	run start start
	run image image
	run network network
	run container container
	run restart restart
	run remove docker rm --force test
	run network-remove docker network rm test
	run stop stop
}
