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
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// What the other backend has.

func (s *state) bothBackends() *Finding {
	other := s.wanted().Other()
	has := s.of(other)
	r := rules{owners: map[string]int{}, meet: map[string]int{}}
	for _, t := range has.tables {
		r.add(t)
	}
	unread := 0
	if !has.whole {
		unread = max(0, s.host.Evidence.Of(other).Rules-r.number)
	}
	if r.number+unread == 0 && len(r.policies) == 0 || !s.process.netAdmin {
		return nil
	}
	found := Finding{Severity: warning, Look: s.show(other)}
	effects := r.effects(other, s.wanted())
	if len(effects) > 0 {
		found.Severity = problem
	}
	isPart := unread > 0 || !has.whole && r.number > 0
	number := r.whose(unread)
	if isPart {
		number = "about " + number
	}
	found.Text = strings.Join(append(effects, fmt.Sprintf("The other backend, %s, has %s. Packets pass both backends",
		other, number)), " ")
	if s.names[0].call.Backend == other {
		found.Text += ", and iptables here lists only this one, because it runs the wrong backend."
	} else {
		found.Text += ", and iptables here does not list this one."
	}
	if isPart {
		found.Text += " Doctor could not read all of them, so it does not know whether they drop or redirect packets."
	}
	found.Do = s.cleanUp()
	return &found
}

// cleanUp is what helps against rules in the other backend.
func (s *state) cleanUp() string {
	const warn = " Do not empty tables by hand: a policy of DROP would stay, and cut all traffic."
	wanted := string(s.wanted())
	do := ""
	if s.has(wrongBackend) {
		do = "First see wrong-backend: iptables here may have made these rules. "
	}
	reboot := "Otherwise drain the node and reboot it. If the rules come back, a service loads saved rules at boot."
	switch {
	case s.network.Own:
		return do + s.agree() + warn
	case s.twoPrograms():
		return do + s.sameBackend() + warn
	case s.known():
		return do + "If what made this still runs, on the node or in a container, have it use " + wanted + ", as the " +
			"host does, and let it clean up. " + reboot + warn
	}
	return do + "On the node, iptables --version shows the backend of the host's programs. Have all others use that, " +
		"and let them clean up. " + reboot + warn
}

// agree is what helps in a Pod's own network, where the node has no part.
func (s *state) agree() string {
	return "All containers of one Pod must use the same backend: set " + remedy.Variable + " to nft in " +
		"each of them, or to legacy in each. Then delete the Pod: a new one starts without these rules."
}

// show are the commands that list the rules of a backend, as far as they are here.
func (s *state) show(b detect.Backend) (commands []string) {
	for f, command := range saves {
		single := iptables.Single(string(b), command)
		has := slices.ContainsFunc(s.of(b).tables, func(t table) bool {
			return t.family == detect.Family(f) && len(t.chains) > 0 && !s.hasNative(t)
		})
		if has && inPath(single) != "" {
			commands = append(commands, single+" -c")
		}
	}
	if len(commands) == 0 && b == detect.NFT && s.hasNFT {
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
func (r *rules) add(t table) {
	reached := t.reached()
	for _, name := range slices.Sorted(maps.Keys(t.chains)) {
		c := t.chains[name]
		if c.drops {
			r.policies = append(r.policies, plain(name)+" ("+t.String()+")")
		}
		for _, target := range c.targets {
			r.number++
			owner := cmp.Or(ownerOf(name), ownerOf(target))
			r.owners[owner]++
			effect := effectOf[target]
			if effect == dnat && owner == kubeProxy {
				effect = services
			}
			if reached[name] && owner != kubelet && owner != dockerDNS {
				r.meet[effect]++
			}
		}
	}
}

// effects are what packets meet that no rule of the right backend can undo.
func (r *rules) effects(other, wanted detect.Backend) (all []string) {
	dropped := fmt.Sprintf("Packets that %s accepts may be dropped: %s has ", wanted, other)
	if r.meet[services] > 0 {
		all = append(all, "Connections to Services may go to Pods that are gone.")
	}
	if r.meet[dnat] > 0 {
		all = append(all, "Connections may be redirected: "+string(other)+" has "+count(r.meet[dnat])+" with "+dnat+".")
	}
	if len(r.policies) > 0 {
		all = append(all, dropped+"the policy DROP for "+list(r.policies)+".")
	}
	for _, effect := range []string{drops, queues} {
		if r.meet[effect] > 0 {
			all = append(all, dropped+count(r.meet[effect])+" with "+effect+".")
		}
	}
	return all
}

// whose says how many rules there are, and whose. unread is the number of those that were not read.
func (r *rules) whose(unread int) string {
	if r.number+unread == 0 {
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
	unknown := r.owners[""] + unread
	switch {
	case unknown > 0 && len(all) == 0:
		return count(r.number+unread) + " of unknown programs"
	case unknown > 0:
		all = append(all, "unknown programs "+thousands(unknown))
	}
	return count(r.number+unread) + " (" + list(all) + ")"
}
