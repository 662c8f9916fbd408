// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// rules is what one backend has in its five tables, in both families.
type rules struct {
	number   int
	listed   bool           // its own program listed them; otherwise only their number is known
	exact    bool           // the number is not a bound or an estimate
	programs string         // the program that lists them, "" if it is not installed here
	families []string       // the commands of the families that have rules or policies: iptables, ip6tables
	owners   map[string]int // how many rules each program has, "" for those of nobody known
	policies []string       // those that are not ACCEPT: "FORWARD (filter, IPv4)"
	services int            // rules of kube-proxy's that packets can reach
	foreign  []string       // chains of nft's in iptables' tables
	dnat     int            // rules that change a destination, and that packets can reach
}

// any reports whether there is anything that could act on a packet.
func (r rules) any() bool { return r.number > 0 || len(r.policies) > 0 || len(r.foreign) > 0 }

// acts reports whether it redirects connections, or drops what nothing accepts.
func (r rules) acts() bool { return r.services > 0 || r.dnat > 0 || len(r.policies) > 0 }

// rulesOf has the -save program of a backend list the tables that are there, if it is installed. Otherwise it goes by
// what the kernel was asked before.
func rulesOf(s *starter, mode evidence.Mode, h Host, p Place) rules {
	r := rules{owners: map[string]int{}, listed: true, exact: true}
	for i, about := range h.Result.Of(mode) {
		family := evidence.Family(i)
		command := [...]string{"iptables", "ip6tables"}[i]
		found := family.String()
		before := r.number + len(r.policies)
		program := p.find(command + "-save")[mode]
		listed := program.Err == nil
		for _, table := range about.Tables {
			if !listed {
				break
			}
			out := s.run(program.Path, mode, command+"-save", "-t", table)
			listed = out.err == nil && !strings.Contains(out.text(), "use 'nft' tool")
			if listed {
				r.add(parse(out.stdout), table, found)
			}
		}
		if !listed {
			r.listed = false
			r.exact = false
			r.number = before - len(r.policies) + about.Count
		}
		for _, c := range about.Foreign {
			r.foreign = append(r.foreign, strconv.Quote(c.Name)+" of "+c.Table)
		}
		if program.Err == nil {
			r.programs = command + "-" + string(mode) + "-save"
		}
		if r.number+len(r.policies) > before {
			r.families = append(r.families, command)
		}
	}
	return r
}

// add takes the chains of one table.
func (r *rules) add(t table, name, family string) {
	for chain, policy := range t.policies {
		if policy == "DROP" {
			r.policies = append(r.policies, chain+" ("+name+", "+family+")")
		}
	}
	reached := t.reached()
	for chain, targets := range t.rules {
		for _, target := range targets {
			r.number++
			owner := ownerOf(chain)
			if owner == "" {
				owner = ownerOf(target)
			}
			r.owners[owner]++
			if reached[chain] && owner == kubeProxy {
				r.services++
			}
			if reached[chain] && (target == "DNAT" || target == "REDIRECT") {
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
		words := split(line)
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
	for i, word := range words[:len(words)-1] {
		if word == "-j" || word == "-g" {
			return words[i+1]
		}
	}
	return ""
}

// split splits a line into words. A word in double quotes may contain spaces, and quotes after a backslash.
func split(line string) (words []string) {
	var word strings.Builder
	quoted, escaped, begun := false, false, false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, c := range strings.TrimRight(line, "\n") {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
			begun = true
		case c == ' ' && !quoted:
			end()
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	end()
	return words
}

// reached are the chains that a packet can reach: the base chains, and those to which rules there lead.
func (t table) reached() map[string]bool {
	reached := map[string]bool{}
	var next []string
	for chain := range t.policies {
		next = append(next, chain)
	}
	for len(next) > 0 {
		chain := next[0]
		next = next[1:]
		if reached[chain] {
			continue
		}
		reached[chain] = true
		next = append(next, t.rules[chain]...)
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
