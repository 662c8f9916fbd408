// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// What the other backend has.

func (f *facts) bothBackends() *Finding {
	r := f.other
	other := f.wanted().Other()
	if !r.any() {
		return nil
	}
	found := Finding{Severity: warning, Look: r.look(other)}
	effects := r.effects(other, f.wanted())
	if len(effects) > 0 {
		found.Severity = problem
	}
	found.Text = strings.Join(append(effects, fmt.Sprintf("The other backend, %s, has %s. The kernel applies them as "+
		"well, and iptables here ", other, r.whose())), " ")
	if f.Here.Backend == other {
		found.Text += "lists only these rules, because it runs the wrong backend."
	} else {
		found.Text += "does not list them."
	}
	found.Do = fmt.Sprintf("Find what still writes to %s, on the node and in other containers, and have it use %s, as "+
		"the host does.", other, f.wanted())
	if !f.Host.Now().Conclusive {
		found.Do = "Find out which backend the host's own programs use (on the node: iptables --version), and have all " +
			"others use it."
	}
	found.Do += " Then let that program clean up its own rules, or reboot the node. Do not empty the tables by hand: a " +
		"policy of DROP would stay, and could cut all traffic."
	return &found
}

// effects are what the rules do that no rule of the right backend can undo.
func (r rules) effects(other, wanted evidence.Mode) (all []string) {
	switch {
	case r.services > 0:
		all = append(all, "Connections to Services may go to Pods that are gone.")
	case r.dnat > 0:
		all = append(all, "Connections may be redirected ("+count(r.dnat)+" with DNAT or REDIRECT).")
	}
	if len(r.policies) > 0 {
		slices.Sort(r.policies)
		all = append(all, fmt.Sprintf("Packets that %s accepts may be dropped: %s has the policy DROP for %s.", wanted,
			other, List(r.policies)))
	}
	return all
}

// whose says how many rules there are, and whose.
func (r rules) whose() string {
	if r.number == 0 && len(r.foreign) > 0 {
		return "chains that are not iptables' own (" + List(r.foreign) + ")"
	}
	if r.number == 0 {
		return "no rules, but policies"
	}
	if !r.listed {
		return "about " + count(r.number)
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
	if r.owners[""] > 0 {
		all = append(all, "unknown "+thousands(r.owners[""]))
	}
	return count(r.number) + " (" + List(all) + ")"
}

// count is a number of rules.
func count(rules int) string {
	if rules == 1 {
		return "1 rule"
	}
	return thousands(rules) + " rules"
}

// look has the commands that show the rules, with counters.
func (r rules) look(mode evidence.Mode) (commands []string) {
	if mode == evidence.NFT && !r.listed {
		return []string{"nft list ruleset"}
	}
	for _, command := range r.commands {
		commands = append(commands, command+"-"+string(mode)+"-save -c")
	}
	return commands
}
