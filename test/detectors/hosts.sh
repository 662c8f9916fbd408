# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The hosts of compare.sh, which reads this file. The commands that make one run in its namespace: "load BACKEND FILE" restores
# rules, "program BACKEND NAME" those of a program of the host, of the families that it has; "firewall BACKEND" is an
# administrator's; "bans BACKEND NUMBER" and "vpn BACKEND" are rules of containers; "blocklist NUMBER" makes native rules.

other() { if [ "$1" = nft ]; then echo legacy; else echo nft; fi; }

for backend in nft legacy; do
	wrong=$(other $backend)
	row "node of kind" $backend "load $backend kind-node.save"
	row "node of kind, and 1,000 bans of a container in $wrong" $backend "load $backend kind-node.save; bans $wrong 1000"
	row "node that has changed its backend: hint in $backend, canary and rules in $wrong" $backend "
		load $wrong nodeport-2019.save
		iptables-$wrong -t mangle -N KUBE-KUBELET-CANARY
		iptables-$backend -t mangle -N KUBE-IPTABLES-HINT"
	row "node before Kubernetes 1.17, with a NodePort" $backend "load $backend nodeport-2019.save"
	row "node before Kubernetes 1.17, with kube-dns" $backend "load $backend kube-dns-2018.save"
	row "node before Kubernetes 1.17, with three endpoints" $backend "load $backend three-endpoints.save"
	row "kube-proxy in ipvs mode, before Kubernetes 1.17" $backend "ipset restore <ipvs-mode.ipset; load $backend ipvs-mode.save"
	row "node before Kubernetes 1.17; somebody has listed $wrong" $backend "
		load $backend three-endpoints.save
		iptables-$wrong -S
		ip6tables-$wrong -S"
	row "ten rules of an administrator" $backend "bans $backend 10"
	row "ten rules of an administrator, and 100 bans of a container in $wrong" $backend "bans $backend 10; bans $wrong 100"
	row "40,000 native rules, then ten rules of an administrator, and three bans of a container in $wrong" $backend "
		blocklist 40000
		bans $backend 10
		bans $wrong 3"
	row "40,000 rules of an administrator, and 35,004 bans of a container in $wrong" $backend "bans $backend 40000; bans $wrong 35004"
done
for backend in nft legacy; do
	wrong=$(other $backend)
	for file in docker-26.1 ufw-0.36 libvirt-11.3 podman-netavark-1.14 cni-plugins-1.1 firewalld-2.3 nixos oracle oracle-linux \
		proxmox shorewall-5.2 nomad; do
		row "$file" $backend "program $backend $file"
		row "$file, and 1,000 bans of a container in $wrong" $backend "program $backend $file; bans $wrong 1000"
	done
	row "docker-26.1 in $backend and ufw-0.36 in $wrong" either "program $backend docker-26.1; program $wrong ufw-0.36"
done
for name in firewalld libvirt netavark; do
	row "$name with nftables" nft "nft -f $name.nft"
	row "$name with nftables, and a VPN container in legacy" nft "nft -f $name.nft; vpn legacy"
	row "$name with nftables, and a firewall in legacy" legacy "nft -f $name.nft; firewall legacy"
done
row "firewalld with nftables, and docker-26.1 in legacy" legacy "nft -f firewalld.nft; program legacy docker-26.1"
row "33,000 native rules, and a firewall of 50 rules in legacy" legacy "blocklist 33000; firewall legacy; bans legacy 47"
row "kube-proxy with nftables" nft "nft -f kube-proxy.nft"
row "kube-proxy with nftables, and nine rules of a container in legacy" nft "nft -f kube-proxy.nft; bans legacy 9"
row "a network of its own, without rules" either true
row "a network of its own, without rules; somebody has listed legacy" either "iptables-legacy -S; ip6tables-legacy -S"
