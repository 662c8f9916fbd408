// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// rules is what one backend has in its five tables, in both families.
type rules struct {
	number   int
	listed   bool           // its own program listed them; otherwise their number is an estimate
	commands []string       // those that have rules or policies: iptables, ip6tables
	owners   map[string]int // how many rules each program has, "" for those of nobody known
	services int            // rules of kube-proxy's that packets can reach
	dnat     int            // rules that change a destination, and that packets can reach
	policies []string       // those that are DROP: "FORWARD (filter, IPv4)"
	foreign  []string       // chains of nft's in iptables' tables
}

// any reports whether there is anything that could act on a packet.
func (r rules) any() bool { return r.number > 0 || len(r.policies) > 0 || len(r.foreign) > 0 }

// rulesOf has the -save program of a backend list the tables that are there. Where it does not, the number is what the
// kernel was asked before.
func rulesOf(s *start.Starter, mode evidence.Mode, h Host, p Place) rules {
	r := rules{owners: map[string]int{}, listed: true}
	for i, about := range h.Of(mode) {
		command := [...]string{"iptables", "ip6tables"}[i]
		family := rules{owners: r.owners}
		for _, table := range about.Tables {
			printed, ok := p.save(s, mode, command+"-save", table)
			r.listed = r.listed && ok
			family.add(parse(printed), table+", "+evidence.Family(i).String())
		}
		for _, c := range about.Foreign {
			r.foreign = append(r.foreign, strconv.Quote(c.Name)+" of "+c.Table)
		}
		if family.number == 0 {
			family.number = about.Count
		}
		if family.any() {
			r.commands = append(r.commands, command)
		}
		r.number += family.number
		r.services += family.services
		r.dnat += family.dnat
		r.policies = append(r.policies, family.policies...)
	}
	return r
}

// save lists a table. ok says that it is complete.
func (p Place) save(s *start.Starter, mode evidence.Mode, command, table string) (printed string, ok bool) {
	program := p.find(command)[mode]
	if program.Err != nil {
		return "", false
	}
	out := s.Run(program.Path, mode, command, "-t", table)
	return out.Stdout, out.Err == nil && !strings.Contains(out.Text(), "use 'nft' tool")
}

// add takes the chains of one table.
func (r *rules) add(t table, place string) {
	for chain, policy := range t.policies {
		if policy == "DROP" {
			r.policies = append(r.policies, chain+" ("+place+")")
		}
	}
	reached := t.reached()
	for chain, targets := range t.rules {
		for _, target := range targets {
			r.number++
			owner := cmp.Or(ownerOf(chain), ownerOf(target))
			r.owners[owner]++
			switch {
			case !reached[chain]:
			case owner == kubeProxy:
				r.services++
			case target == "DNAT", target == "REDIRECT":
				r.dnat++
			}
		}
	}
}

// table is one table as iptables-save prints it.
type table struct {
	policies map[string]string   // of the base chains
	rules    map[string][]string // the target of each rule, by chain; "" if a rule has none
}

// quoted is a comment, which may look like a target.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// parse reads what "iptables-save -t TABLE" prints:
//
//	*filter
//	:INPUT DROP [0:0]
//	:f2b-sshd - [0:0]
//	-A INPUT -p tcp -m comment --comment "a -j b" -j f2b-sshd
//	COMMIT
func parse(text string) table {
	t := table{policies: map[string]string{}, rules: map[string][]string{}}
	for line := range strings.Lines(text) {
		words := strings.Fields(quoted.ReplaceAllString(line, `""`))
		switch {
		case len(words) >= 2 && strings.HasPrefix(words[0], ":") && words[1] != "-":
			t.policies[words[0][1:]] = words[1]
		case len(words) >= 2 && words[0] == "-A":
			t.rules[words[1]] = append(t.rules[words[1]], targetIn(words))
		}
	}
	return t
}

// targetIn is the word after -j or -g.
func targetIn(words []string) string {
	i := slices.IndexFunc(words, func(word string) bool { return word == "-j" || word == "-g" })
	if i < 0 || i == len(words)-1 {
		return ""
	}
	return words[i+1]
}

// reached are the chains that a packet can reach: the base chains, and those to which rules there lead.
func (t table) reached() map[string]bool {
	reached := map[string]bool{}
	next := slices.Collect(maps.Keys(t.policies))
	for len(next) > 0 {
		chain := next[0]
		next = next[1:]
		if !reached[chain] {
			reached[chain] = true
			next = append(next, t.rules[chain]...)
		}
	}
	return reached
}

const kubeProxy = "kube-proxy"

// owners are the programs that make chains of certain names, by the beginnings of these. The first that fits counts.
var owners = []struct{ program, prefixes string }{
	{"kubelet", "KUBE-IPTABLES-HINT KUBE-KUBELET-CANARY KUBE-FIREWALL"},
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
	{"fail2ban", "f2b- fail2ban-"},
	{"Docker", "DOCKER"},
	{"Podman", "NETAVARK"},
	{"CNI's plugins", "CNI-"},
	{"CRI-O", "CRIO-"},
	{"libvirt", "LIBVIRT_"},
	{"ufw", "ufw-  ufw6-"},
	{"firewalld", "INPUT_ZONES INPUT_direct FORWARD_IN_ FORWARD_OUT_ FORWARD_direct OUTPUT_direct PREROUTING_ " +
		"POSTROUTING_ IN_ OUT_ FWDI_ FWDO_ FWD_ PRE_ POST_"},
	{"CrowdSec", "CROWDSEC"},
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
