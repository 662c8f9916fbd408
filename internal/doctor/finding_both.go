// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// What the other backend has.

func (o *observation) bothBackends() *Finding {
	other := o.wanted().Other()
	var r rules
	r.owners = map[string]int{}
	tables := o.legacy
	if other == detect.NFT {
		tables = o.ruleset.tables
	}
	for _, t := range tables {
		r.add(t)
	}
	unlisted := 0
	if other == detect.Legacy && len(tables) < len(o.listed[detect.IPv4])+len(o.listed[detect.IPv6]) {
		unlisted = max(0, o.Host.Evidence.Legacy.Rules-r.number)
	}
	if r.number+unlisted == 0 && len(r.policies) == 0 || o.blocked() {
		return nil
	}
	found := Finding{Severity: warning, Look: o.show(other, tables)}
	effects := r.effects(other, o.wanted())
	if len(effects) > 0 {
		found.Severity = problem
	}
	found.Text = strings.Join(append(effects, fmt.Sprintf("The other backend, %s, has %s. Packets pass both backends",
		other, r.whose(unlisted))), " ")
	switch {
	case unlisted > 0:
		found.Text += ". This image cannot list these rules, so doctor does not know whether they drop or redirect " +
			"packets."
	case o.Here.Backend == other:
		found.Text += ", and iptables here lists only this one, because it runs the wrong backend."
	default:
		found.Text += ", and iptables here does not list this one."
	}
	found.Do = o.cleanUp(other, unlisted > 0)
	return &found
}

// cleanUp is what helps against rules in the other backend.
func (o *observation) cleanUp(other detect.Backend, unlisted bool) string {
	do := ""
	if unlisted {
		do = "On the node, or in an image that has both backends, see what they do: " +
			iptables.Single(string(other), "iptables-save") + " -c. "
	}
	if o.found(wrongBackend) {
		do += "First see wrong-backend: iptables here may have made these rules. "
	}
	if o.known() {
		do += fmt.Sprintf("If what made this still runs, on the node or in a container, have it use %s, as the host "+
			"does, and let it clean up. ", o.wanted())
	} else {
		do += "On the node, iptables --version shows the backend of the host's programs. Have all others use that, " +
			"and let them clean up. "
	}
	return do + "Otherwise drain the node and reboot it. " +
		"If the rules come back, a service loads saved rules at boot. " +
		"Do not empty tables by hand: a policy of DROP would stay, and cut all traffic."
}

// show are the commands that list the rules of a backend, as far as they are here and can.
func (o *observation) show(b detect.Backend, tables []table) (commands []string) {
	for f, command := range saves {
		single := iptables.Single(string(b), command)
		has := slices.ContainsFunc(tables, func(t table) bool {
			return t.family == detect.Family(f) && len(t.chains) > 0
		})
		unread := slices.ContainsFunc(tables, func(t table) bool { return len(t.chainsOf(madeByNFT)) > 0 })
		if has && !unread && slices.Contains(o.commands, single) {
			commands = append(commands, single+" -c")
		}
	}
	if len(commands) == 0 && b == detect.NFT && slices.Contains(o.commands, "nft") {
		return []string{"nft list ruleset"}
	}
	if len(commands) == 0 {
		return []string{showEvidence}
	}
	return commands
}

// rules is what one backend has in its tables.
type rules struct {
	number   int
	owners   map[string]int // how many rules each program has, "" for those of nobody known
	policies []string       // those of base chains that are not ACCEPT: "FORWARD (ip filter)"

	// Of the rules that packets can reach, except kubelet's:
	services int // those of kube-proxy that change a destination
	dnat     int // all others that do
	drops    int // those that drop or reject
}

// add takes the chains of one table.
func (r *rules) add(t table) {
	reached := t.reached()
	for _, name := range slices.Sorted(maps.Keys(t.chains)) {
		c := t.chains[name]
		if c.policy != "" && c.policy != "ACCEPT" {
			r.policies = append(r.policies, name+" ("+t.String()+")")
		}
		for _, target := range c.targets {
			r.number++
			owner := cmp.Or(ownerOf(name), ownerOf(target))
			r.owners[owner]++
			redirects := target == "DNAT" || target == "REDIRECT"
			switch {
			case !reached[name] || owner == kubelet:
			case redirects && owner == kubeProxy:
				r.services++
			case redirects:
				r.dnat++
			case target == "DROP", target == "REJECT":
				r.drops++
			}
		}
	}
}

// effects are what packets meet that no rule of the right backend can undo.
func (r *rules) effects(other, wanted detect.Backend) (all []string) {
	if r.services > 0 {
		all = append(all, "Connections to Services may go to Pods that are gone.")
	}
	if r.dnat > 0 {
		all = append(all, "Connections may be redirected: "+string(other)+" has "+count(r.dnat)+" with DNAT or "+
			"REDIRECT.")
	}
	if len(r.policies) > 0 {
		all = append(all, fmt.Sprintf("Packets that %s accepts may be dropped: %s has the policy DROP for %s.", wanted,
			other, list(r.policies)))
	}
	if r.drops > 0 {
		all = append(all, fmt.Sprintf("Packets that %s accepts may be dropped: %s has %s with DROP or "+
			"REJECT.", wanted, other,
			count(r.drops)))
	}
	return all
}

// whose says how many rules there are, and whose. unlisted is the number of those that could not be listed.
func (r *rules) whose(unlisted int) string {
	if r.number+unlisted == 0 {
		return "this policy and no rules"
	}
	names := slices.SortedFunc(maps.Keys(r.owners), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.owners[b], r.owners[a]), cmp.Compare(a, b))
	})
	var all []string
	for _, name := range names {
		if name != "" {
			all = append(all, name+" "+thousands(r.owners[name]))
		}
	}
	unknown := r.owners[""] + unlisted
	switch {
	case unknown > 0 && len(all) == 0:
		return count(r.number+unlisted) + " of unknown programs"
	case unknown > 0:
		all = append(all, "unknown programs "+thousands(unknown))
	}
	return count(r.number+unlisted) + " (" + list(all) + ")"
}

const (
	kubelet   = "kubelet"
	kubeProxy = "kube-proxy"
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
	{"Docker", "DOCKER"},
	{"Podman", "NETAVARK"},
	{"CNI's plugins", "CNI-"},
	{"CRI-O", "CRIO-"},
	{"libvirt", "LIBVIRT_"},
	{"ufw", "ufw- ufw6-"},
	{"firewalld", "INPUT_ZONES INPUT_direct FORWARD_IN_ FORWARD_OUT_ FORWARD_direct OUTPUT_direct PREROUTING_ " +
		"POSTROUTING_ IN_ OUT_ FWDI_ FWDO_ FWD_ PRE_ POST_"},
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
