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
	found.Text = fmt.Sprintf("%s has %s too", other, r.whose())
	switch {
	case f.Here.Backend == other:
		found.Text += ". The kernel applies both, and iptables here lists these, because it runs the wrong backend."
	default:
		found.Text += ". The kernel applies them, and iptables here does not list them."
	}
	if r.acts() {
		found.Severity = problem
		found.Text += " " + r.effect(f.wanted())
	}
	const cleanUp = " Then let that program clean up its own rules, or reboot the node. Do not empty the tables by " +
		"hand: " +
		"their policies would stay, and could cut all traffic."
	found.Do = fmt.Sprintf("The host uses %s. Find what still writes to %s, on the node and in other containers, and "+
		"have "+
		"it use %s.", f.wanted(), other, f.wanted()) + cleanUp
	if !f.Host.now().Conclusive {
		found.Do = "Find out which backend the host's own programs use (on the node: iptables --version), and have " +
			"all " +
			"others use it." + cleanUp
	}
	return &found
}

// effect says what the rules do that no rule of the right backend can undo.
func (r rules) effect(wanted evidence.Mode) string {
	var effects []string
	switch {
	case r.services > 0:
		effects = append(effects, "Rules of kube-proxy there send connections of Services to Pods that may be gone.")
	case r.dnat == 1:
		effects = append(effects, "One rule there redirects connections.")
	case r.dnat > 1:
		effects = append(effects, thousands(r.dnat)+" rules there redirect connections.")
	}
	if len(r.policies) > 0 {
		slices.Sort(r.policies)
		effects = append(effects, "Policy DROP is set there for "+list(r.policies)+": what no rule there accepts is "+
			"lost, "+
			"whatever "+string(wanted)+" accepts.")
	}
	return strings.Join(effects, " ")
}

// whose says how many rules there are, and whose.
func (r rules) whose() string {
	total := thousands(r.number)
	if !r.exact {
		total = "about " + total
	}
	total += " rules"
	if r.number == 1 && r.exact {
		total = "1 rule"
	}
	names := slices.SortedFunc(maps.Keys(r.owners), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.owners[b], r.owners[a]), cmp.Compare(a, b))
	})
	if i := slices.Index(names, ""); i >= 0 {
		names = append(slices.Delete(names, i, i+1), "")
	}
	var all []string
	for _, name := range names {
		all = append(all, cmp.Or(name, "others")+" "+thousands(r.owners[name]))
	}
	switch {
	case r.number == 0 && len(r.foreign) > 0:
		return "chains that are not iptables' own (" + list(r.foreign) + ")"
	case r.number == 0:
		return "no rule"
	case len(all) == 0:
		return total
	}
	return total + " (" + list(all) + ")"
}

// look has the commands that show the rules, with counters: here if a program for them is installed.
func (r rules) look(mode evidence.Mode) (commands []string) {
	for _, family := range r.families {
		commands = append(commands, family+"-"+string(mode)+"-save -c")
	}
	if mode == evidence.NFT && !r.listed {
		commands = []string{"nft list ruleset"}
	}
	return commands
}
