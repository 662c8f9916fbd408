// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// plain matches what a shell and sed take as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// families are in the order in which they are printed.
var families = []detect.Family{detect.IPv4, detect.IPv6}

// otherRules says which rules are in the backend that the host does not use, beside the chains that are left over, and
// whose they are: programs of the host are known, and other owners each begin their chains in a way of their own, such
// as KUBE-, cali- or ts-.
func (r *Report) otherRules(removals []removal) string {
	var tables, begin, owners []string
	pending := comesFirst(removals)
	other := otherMode(r.Host.Mode)
	for _, family := range families {
		e := r.Host.Of(other, family)
		for _, t := range e.Tables {
			x := removalIn(removals, family, t.Name)
			if pending(x) {
				continue
			}
			what := ruleCount(e, t)
			left := find(r.saved, family, t.Name)
			if len(x.chains) > 0 && left != nil {
				t.Rules = detect.Count{Min: x.beside(left), Max: x.beside(left)}
				what = ruleCount(e, t)
			}
			if what != "" {
				tables = append(tables, fmt.Sprintf("%s in %s %s %s", what, other, family, t.Name))
			}
			begin = append(begin, prefixes(without(t.Chains, x.chains))...)
		}
		for _, p := range e.Programs {
			x := removalIn(removals, family, p.Table)
			if !pending(x) && !slices.Contains(x.chains, p.Chain) {
				owners = append(owners, p.Name)
			}
		}
	}
	rules := strings.Join(tables, ", ")
	if rules == "" {
		return ""
	}
	owners = unique(owners)
	if len(owners) > 0 {
		rules += ", made by " + strings.Join(owners, ", ")
	}
	begin = unique(begin)
	if len(begin) > 0 {
		rules += ", with chains " + strings.Join(begin, ", ")
	}
	return rules
}

// ruleCount says how many rules a table has: "3", or "at most 3 rules" where somebody uses nft directly in it. It is ""
// for none, and where counting failed.
func ruleCount(e detect.Evidence, t detect.Table) string {
	foreign := foreignIn(e, t.Name)
	switch {
	case t.Rules.Min == 0 && foreign == "":
		return ""
	case t.Rules.Max == 0:
		return fmt.Sprintf("chain %q, which is not iptables' own,", foreign)
	case t.Rules.Min < t.Rules.Max:
		return t.Rules.String()
	default:
		return fmt.Sprint(t.Rules.Min)
	}
}

// foreignIn is a chain for which iptables-nft may not list a table, "" if there is none.
func foreignIn(e detect.Evidence, table string) string {
	for _, c := range e.Foreign {
		if c.Table == table {
			return c.Name
		}
	}
	return ""
}

// programsInBoth says which programs of the host keep rules in which backend, if there are some in both. Where one
// program has left the same chains in the other backend, chains-in-both says so.
func (r *Report) programsInBoth() string {
	if !slices.Contains(r.Host.Conflicts, detect.HostProgramsInBoth) || len(r.removals()) > 0 {
		return ""
	}
	var all []string
	for _, e := range r.Host.Evidence {
		for _, p := range e.Programs {
			where := "table " + p.Table
			if p.Chain != "" {
				where = "chain " + p.Chain + " in " + p.Table
			}
			all = append(all, fmt.Sprintf("%s in %s (%s)", p.Name, e.Backend, where))
		}
	}
	return strings.Join(unique(all), ", ")
}

// showPrograms has the commands that list what the programs of the host keep, with nft where iptables cannot list it.
func (r *Report) showPrograms() string {
	var all []string
	for _, e := range r.Host.Evidence {
		for _, p := range e.Programs {
			switch {
			case p.Chain == "":
				all = append(all, "nft list table "+p.Table)
			case foreignIn(e, p.Table) != "":
				all = append(all, "nft list table "+nftFamilies[e.Family]+" "+p.Table)
			default:
				all = append(all, single(e.Backend, e.Family, "-save")+" -t "+p.Table)
			}
		}
	}
	return "\n" + strings.Join(unique(all), "\n")
}

// closed is a built-in chain of the backend that the host does not use, with a policy that does not let everything
// pass.
type closed struct {
	family detect.Family
	table  string
	policy
}

func (r *Report) closedChains() (all []closed) {
	for _, t := range r.saved {
		for _, p := range t.policies {
			if p.verdict != accept {
				all = append(all, closed{t.family, t.name, p})
			}
		}
	}
	return all
}

// otherPolicies says which of these policies there are, and the commands that let everything pass: none while chains
// have to be removed by hand.
func (r *Report) otherPolicies(removals []removal) (policies, commands string) {
	other := otherMode(r.Host.Mode)
	pending := comesFirst(removals)
	var all []string
	for _, c := range r.closedChains() {
		if pending(removalIn(removals, c.family, c.table)) {
			continue
		}
		all = append(all, fmt.Sprintf("policy %s of %s in %s %s %s", c.verdict, c.chain, other, c.family, c.table))
		commands += fmt.Sprintf("\n%s%s -t %s -P %s %s", single(other, c.family, ""), wait(other), c.table, c.chain,
			accept)
	}
	if slices.ContainsFunc(removals, removal.byHand) {
		commands = ""
	}
	return strings.Join(all, ", "), commands
}

// showOthers has the commands that list the other backend's rules and policies, of the families that have some.
func (r *Report) showOthers() (commands string) {
	other := otherMode(r.Host.Mode)
	foreign := false
	for _, family := range families {
		e := r.Host.Of(other, family)
		rules := slices.ContainsFunc(e.Tables, func(t detect.Table) bool { return t.Rules.Min > 0 })
		policies := slices.ContainsFunc(r.closedChains(), func(c closed) bool { return c.family == family })
		if rules || policies {
			commands += "\n" + single(other, family, "-save")
		}
		foreign = foreign || len(e.Foreign) > 0
	}
	if foreign { // iptables-nft may list nothing of such a table
		commands += "\nnft list ruleset"
	}
	return commands
}

// prefixes returns how chains begin that have a prefix: "KUBE-*".
func prefixes(chains []string) (begin []string) {
	for _, chain := range chains {
		i := strings.IndexAny(chain, "-_")
		if i > 0 {
			begin = append(begin, chain[:i+1]+"*")
		}
	}
	return begin
}

// without leaves out some words.
func without(words, some []string) (rest []string) {
	out := set(some)
	for _, word := range words {
		if !out[word] {
			rest = append(rest, word)
		}
	}
	return rest
}

// unique drops what was there before.
func unique(words []string) (once []string) {
	before := map[string]bool{}
	for _, word := range words {
		if !before[word] {
			before[word] = true
			once = append(once, word)
		}
	}
	return once
}

// splitFamilies says which backend has kubelet's chains for which family, if neither has them for both: the host's
// iptables and ip6tables differ. Beside a hint, a canary is left over, whatever its family: a kubelet that makes hints
// makes them for both.
func (r *Report) splitFamilies() string {
	hinted := slices.ContainsFunc(r.Host.Evidence, func(e detect.Evidence) bool { return e.Hint == detect.Yes })
	in := func(backend detect.Mode, family detect.Family) bool {
		e := r.Host.Of(backend, family)
		return e.Hint == detect.Yes || !hinted && e.Canary == detect.Yes
	}
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		other := otherMode(mode)
		four := in(mode, detect.IPv4) && !in(other, detect.IPv4)
		six := in(other, detect.IPv6) && !in(mode, detect.IPv6)
		if four && six {
			return fmt.Sprintf("%s for IPv4 and %s for IPv6", mode, other)
		}
	}
	return ""
}
