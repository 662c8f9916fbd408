# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The hosts of compare.sh, which reads this file. The commands that make one run in its namespace: "load BACKEND FILE" restores
# rules, "bans BACKEND NUMBER" and "vpn BACKEND" are rules of containers that took the wrong backend.

other() { if [ "$1" = nft ]; then echo legacy; else echo nft; fi; }

for backend in nft legacy; do
	wrong=$(other $backend)
	row "node of kind" $backend "load $backend kind-node.save"
	row "node of kind, 1,000 bans of a container in $wrong" $backend "load $backend kind-node.save; bans $wrong 1000"
	row "node after a change: hint in $backend, canary and rules in $wrong" $backend \
		"load $wrong three-endpoints.save; ip\${1:-}tables-$wrong -t mangle -N KUBE-KUBELET-CANARY; ip\${1:-}tables-$backend -t mangle -N KUBE-IPTABLES-HINT"
	row "NodePort service, before kubelet had chains" $backend "load $backend nodeport-2019.save"
	row "kube-dns, before kubelet had chains" $backend "load $backend kube-dns-2018.save"
	row "one service, three endpoints" $backend "load $backend three-endpoints.save"
	row "kube-proxy in ipvs mode" $backend "ipset restore <ipvs-mode.ipset; load $backend ipvs-mode.save"
	row "three endpoints; somebody has listed $wrong" $backend "load $backend three-endpoints.save; iptables-$wrong -S; ip6tables-$wrong -S"
done
row "a network of its own, no rules" either "true"
