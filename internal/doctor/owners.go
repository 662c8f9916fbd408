// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import "strings"

// Whose chains are, by their names. This only names programs to people: it decides nothing.

const (
	kubelet   = "kubelet"
	kubeProxy = "kube-proxy"
	dockerDNS = "Docker's DNS"
	unknown   = "unknown programs"
)

// owners are the programs that make chains of certain names, by the beginnings of these. The first that fits counts.
var owners = []struct{ program, prefixes string }{
	{kubelet, "KUBE-IPTABLES-HINT KUBE-KUBELET-CANARY KUBE-FIREWALL"},
	{"kube-router", "KUBE-ROUTER- KUBE-POD-FW- KUBE-NWPLCY-"},
	{kubeProxy, "KUBE-"},
	{"Calico", "cali- cali: felix-"},
	{"Cilium", "CILIUM_ OLD_CILIUM_"},
	{"Flannel", "FLANNEL-"},
	{"Weave", "WEAVE"},
	{"Antrea", "ANTREA-"},
	{"Amazon's CNI plugin", "AWS-"},
	{"ip-masq-agent", "IP-MASQ"},
	{"Istio", "ISTIO_"},
	{"Linkerd", "PROXY_INIT_"},
	{"Tailscale", "ts-"},
	{"NetBird", "netbird- NETBIRD-"},
	{"mailcow", "MAILCOW"},
	{"fail2ban", "f2b- fail2ban-"},
	{dockerDNS, "DOCKER_OUTPUT DOCKER_POSTROUTING"},
	{"Docker", "DOCKER"},
	{"Podman", "NETAVARK"},
	{"CNI's plugins", "CNI-"},
	{"CRI-O", "CRIO-"},
	{"libvirt", "LIBVIRT_"},
	{"ufw", "ufw- ufw6-"},
	{"firewalld", "INPUT_ZONES INPUT_direct FORWARD_IN_ZONES FORWARD_OUT_ZONES FORWARD_direct OUTPUT_direct " +
		"PREROUTING_ZONES PREROUTING_direct POSTROUTING_ZONES POSTROUTING_direct"},
	{"CrowdSec", "CROWDSEC crowdsec-"},
}

// ownerOf is the program that makes a chain of this name, "" if it is not known.
func ownerOf(chain string) string {
	for _, owner := range owners {
		for prefix := range strings.FieldsSeq(owner.prefixes) {
			if strings.HasPrefix(chain, prefix) {
				return owner.program
			}
		}
	}
	return ""
}
