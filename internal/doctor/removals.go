// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// removals are those of the chains that are left over in the backend that the host does not use. Where that is not
// certain, neither is which of them are left over.
func (r *Report) removals() (all []removal) {
	if !r.Host.Conclusive {
		return nil
	}
	other := otherMode(r.Host.Mode)
	for _, family := range families {
		for _, t := range r.Host.Of(other, family).Tables {
			chains := r.leftover(family, t)
			if len(chains) == 0 {
				continue
			}
			x := removal{backend: other, family: family, table: t.Name, chains: chains}
			printed, hostsOwn := find(r.saved, family, t.Name), r.hostsOwn(family, t.Name)
			all = append(all, planRemoval(x, printed, hostsOwn, t.Rules.Max == 0))
		}
	}
	return all
}

// hostsOwn is the table of the host's own backend, nil if it could not be listed, or if its rules may have no effect.
func (r *Report) hostsOwn(family detect.Family, table string) *saved {
	inTable := func(f detect.Fault) bool { return f.Table == table }
	if slices.ContainsFunc(r.Host.Of(r.Host.Mode, family).Faults, inTable) {
		return nil
	}
	return find(r.savedHost, family, table)
}

// leftover returns the chains of a table that are left over: those that the host's backend has under the same name, and
// kubelet's.
func (r *Report) leftover(f detect.Family, t detect.Table) (chains []string) {
	inHost := map[string]bool{}
	for _, h := range r.Host.Of(r.Host.Mode, f).Tables {
		if h.Name == t.Name {
			inHost = set(h.Chains)
		}
	}
	split := r.splitFamilies() != ""
	for _, chain := range t.Chains {
		kubelets := !split && (chain == detect.HintChain || chain == detect.CanaryChain)
		left := inHost[chain] || kubelets
		if left && plain.MatchString(chain) {
			chains = append(chains, chain)
		}
	}
	return chains
}

// removalIn is the removal from a table, one of no chains if there is none.
func removalIn(removals []removal, family detect.Family, table string) removal {
	for _, x := range removals {
		if x.family == family && x.table == table {
			return x
		}
	}
	return removal{}
}

// comesFirst returns a test for removals that have to be done before anybody touches the other rules of the table:
// those rules may accept what a policy drops, or need the chains.
func comesFirst(removals []removal) func(removal) bool {
	byHand := slices.ContainsFunc(removals, removal.byHand)
	return func(x removal) bool { return len(x.opened) > 0 || byHand && len(x.chains) > 0 }
}

// leftovers says which chains are left over.
func leftovers(removals []removal) string {
	var all []string
	for _, x := range removals {
		all = append(all, fmt.Sprintf("%s (%s %s)", strings.Join(x.chains, ", "), x.family, x.table))
	}
	return strings.Join(all, ", ")
}

// removeAll has the commands of all removals, and says which policies they change.
func removeAll(removals []removal) (opened, commands string) {
	var policies []string
	for _, x := range removals {
		commands += "\n" + x.script()
		for _, chain := range x.opened {
			policies = append(policies, chain+" in "+x.where())
		}
	}
	if len(policies) > 0 {
		opened = ", and let pass what they accepted (the policy becomes ACCEPT: " + strings.Join(policies, ", ") + ")"
	}
	return opened, commands
}

// tablesWith says in which tables chains have to be removed by hand for a reason.
func tablesWith(removals []removal, reason func(removal) bool) string {
	var all []string
	for _, x := range removals {
		if reason(x) {
			all = append(all, x.where())
		}
	}
	return strings.Join(all, ", ")
}

// showTables has the commands that list the tables.
func showTables(removals []removal) (commands string) {
	for _, x := range removals {
		commands += fmt.Sprintf("\n%s -t %s", single(x.backend, x.family, "-save"), x.table)
	}
	return commands
}
