// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"path/filepath"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

// clients make rules on healthy nodes, with the iptables that the node uses.
var clients = map[string]string{
	"kubelet": "for t in mangle nat filter; do $ipt -t $t -N KUBE-KUBELET-CANARY; done; $ipt -N KUBE-FIREWALL; $ipt " +
		"-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -j DROP; $ipt -A OUTPUT -j KUBE-FIREWALL",
	"Calico": "$ipt -N cali-FORWARD; $ipt -A FORWARD -m comment --comment 'cali:a' -j cali-FORWARD; $ipt -A " +
		"cali-FORWARD -m conntrack --ctstate INVALID -j DROP; $ipt -t mangle -A PREROUTING -j MARK --set-xmark " +
		"0x0/0xf0000",
	"Cilium": "$ipt -t mangle -N CILIUM_PRE_mangle; $ipt -t mangle -A PREROUTING -j CILIUM_PRE_mangle; $ipt -t " +
		"mangle -A CILIUM_PRE_mangle -p tcp -m mark --mark 0x200 -j TPROXY --on-port 5; $ipt -t raw -A PREROUTING -j " +
		"CT --notrack",
	"Istio": "$ipt -t nat -N ISTIO_OUTPUT; $ipt -t nat -A OUTPUT -p tcp -j ISTIO_OUTPUT; $ipt -t nat -A ISTIO_OUTPUT " +
		"-m owner --uid-owner 1337 -j RETURN; $ipt -t nat -A ISTIO_OUTPUT -p tcp -j REDIRECT --to-ports 15001",
	"fail2ban": "$ipt -N f2b-sshd; $ipt -A f2b-sshd -s 192.0.2.1 -j REJECT; $ipt -A INPUT -p tcp -m multiport " +
		"--dports 22 -j f2b-sshd",
	"Docker": "$ipt -N DOCKER-USER; $ipt -A FORWARD -j DOCKER-USER; $ipt -P FORWARD DROP; $ipt -t nat -N DOCKER; " +
		"$ipt -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER; $ipt -t nat -A POSTROUTING -s " +
		"172.17.0.0/16 -j MASQUERADE",
}

// healthySituations are the rules of those, and of each dump of test/rules, on nodes with kubelet, in both backends.
func healthySituations() (all []situation) {
	for _, b := range detect.Backends() {
		kubelet := "iptables-" + string(b) + hint
		for client, commands := range clients {
			all = append(all, situation{
				doc: "healthy: " + client + " in " + string(b), again: client != "Istio",
				make: kubelet + strings.ReplaceAll(commands, "$ipt", "iptables-"+string(b)),
			})
		}
		for _, dump := range rules.Dumps() {
			command := map[string]string{
				".save": "iptables-" + string(b) + "-restore -n", ".save6": "ip6tables-" + string(b) + "-restore -n",
				".nft": "nft -f -",
			}[filepath.Ext(dump.File)]
			all = append(all, situation{
				doc: "healthy: " + dump.File + " in " + string(b), again: true,
				make: kubelet + command + " <<'END'\n" + dump.Text + "\nEND",
			})
		}
	}
	return all
}
