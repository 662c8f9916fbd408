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

func (s *state) bothBackends() *Finding {
	other := s.wanted().Other()
	has := s.of(other)
	r := rules{owners: map[string]int{}, meet: map[string]int{}}
	for _, t := range has.tables {
		r.add(t)
	}
	number := r.number
	if !has.whole && s.host.Evidence.Of(other).Rules > number {
		number = s.host.Evidence.Of(other).Rules
		r.owners[unknown] += number - r.number
	}
	if number == 0 && len(r.policies) == 0 {
		return nil
	}
	found := Finding{Severity: warning, Look: s.show(other), Do: s.adviseCleanUp()}
	effects := r.effects(other, s.wanted())
	if len(effects) > 0 {
		found.Severity = problem
	}
	what := "no rules"
	if number > 0 {
		what = count(number) + " of " + list(r.sortedOwners())
	}
	isPart := !has.whole && number > 0
	switch {
	case isPart && other == detect.NFT:
		what = "at least " + what // its rules are counted up to a limit
	case isPart:
		what = "about " + what
	}
	found.Text = strings.Join(append(effects, fmt.Sprintf("The other backend, %s, has %s. Packets pass both backends",
		other, what)), " ")
	if s.names[0].call.Backend == other {
		found.Text += ", and iptables here lists only this one, because it runs the wrong backend."
	} else {
		found.Text += ", and iptables here does not list this one."
	}
	if isPart && len(effects) == 0 {
		found.Text += " Doctor could not read all of them, so it does not know whether they drop or redirect packets."
	}
	return &found
}

// adviseCleanUp says what to do about rules in the other backend.
func (s *state) adviseCleanUp() string {
	const left = " If no program makes them any more, drain the node and reboot it: that removes them, unless a " +
		"service loads saved rules at boot."
	do := ""
	if s.wrongBackend() != nil {
		do = "First see wrong-backend: iptables here may have made these rules. "
	}
	switch {
	case s.network.Own:
		do += s.adviseAgreement() + " Then delete the Pod: a new one starts without what is left of this one."
	case s.known():
		do += "Find the program that made these rules or policies. If it still runs, on the node or in a container, " +
			"configure it to use " + string(s.wanted()) + ", like the host, and let it clean up." + left
	default:
		do += "Find the programs that made these rules or policies, on the node or in containers. Configure all to " +
			"use the same backend, and let them clean up the other one. On the node, iptables --version shows which " +
			"one the host's programs use." + left
	}
	return do + " Do not empty tables by hand: a policy of DROP would stay, and cut all traffic."
}

// show are the commands that list the rules of a backend, as far as they are here.
func (s *state) show(b detect.Backend) (commands []string) {
	if b == detect.NFT && s.lists["nft"] {
		return []string{"nft list ruleset"} // has what iptables does not list, too
	}
	for f, command := range saves {
		single := iptables.Single(string(b), command)
		canList := s.lists[single] && (b == detect.NFT || s.process.netRaw)
		if canList && len(s.existing(b, detect.Family(f))) > 0 {
			commands = append(commands, single+" -c")
		}
	}
	if len(commands) == 0 {
		return []string{showEvidence}
	}
	return commands
}

// rules is what one backend has in its tables.
type rules struct {
	number   int
	owners   map[string]int // how many rules each program has
	policies []string       // those of base chains that are not ACCEPT: "FORWARD (ip filter)"

	// Of the rules that packets can reach, except kubelet's and those by which Docker answers a container's DNS:
	meet map[string]int // how many have an effect
}

// The effects of a rule, as a sentence has them.
const (
	services = "services" // those of kube-proxy that change a destination
	dnat     = "DNAT, REDIRECT or TPROXY"
	drops    = "DROP or REJECT"
	queues   = "NFQUEUE without bypass"
)

var effectOf = map[string]string{
	"DNAT": dnat, "REDIRECT": dnat, "TPROXY": dnat, "DROP": drops, "REJECT": drops, "QUEUE": queues, "NFQUEUE": queues,
}

// add takes the chains of one table.
func (r *rules) add(t iptables.Table) {
	isReached := reached(t)
	for _, c := range t.Chains {
		if c.Drops {
			r.policies = append(r.policies, plain(c.Name)+" ("+t.String()+")")
		}
		for _, rule := range c.Rules {
			owner := cmp.Or(ownerOf(c.Name), ownerOf(rule.Target), unknown)
			r.number++
			r.owners[owner]++
			effect := effectOf[rule.Target]
			if effect == dnat && owner == kubeProxy {
				effect = services
			}
			if isReached[c.Name] && owner != kubelet && owner != dockerDNS && !rule.Bypass {
				r.meet[effect]++
			}
		}
	}
}

// effects are what packets meet that no rule of the right backend can undo.
func (r *rules) effects(other, wanted detect.Backend) (all []string) {
	if r.meet[services] > 0 {
		all = append(all, "Connections to Services may go to Pods that are gone.")
	}
	if r.meet[dnat] > 0 {
		all = append(all, "Connections may be redirected: "+string(other)+" has "+count(r.meet[dnat])+" with "+dnat+".")
	}
	var dropped []string
	if len(r.policies) > 0 {
		dropped = append(dropped, "the policy DROP for "+list(r.policies))
	}
	for _, effect := range []string{drops, queues} {
		if r.meet[effect] > 0 {
			dropped = append(dropped, count(r.meet[effect])+" with "+effect)
		}
	}
	if len(dropped) > 0 {
		all = append(all, fmt.Sprintf("Packets that %s accepts may be dropped: %s has %s.", wanted, other,
			strings.Join(dropped, ", and ")))
	}
	return all
}

// sortedOwners are the programs that have rules, those with the most first.
func (r *rules) sortedOwners() []string {
	return slices.SortedFunc(maps.Keys(r.owners), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.owners[b], r.owners[a]), cmp.Compare(a, b))
	})
}
