# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Three network namespaces: client - this one - server.
set -e
mkdir -p /run/netns
ip netns add client
ip netns add server
ip link add toclient type veth peer name eth0 netns client
ip link add toserver type veth peer name eth0 netns server
ip addr add 10.1.0.1/24 dev toclient
ip addr add 10.2.0.1/24 dev toserver
ip -n client addr add 10.1.0.2/24 dev eth0
ip -n server addr add 10.2.0.2/24 dev eth0
for n in client server; do
	ip -n $n link set lo up
	ip -n $n link set eth0 up
done
ip link set toclient up
ip link set toserver up
ip -n client route add default via 10.1.0.1
ip -n server route add default via 10.2.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
