// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// plain matches what a shell and grep take as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// other looks at the backend that the host does not use: which rules it has, and how its chains begin, for their
// owners each have a prefix, such as KUBE-, cali- or DOCKER-; the chains that are left over; and the commands that
// remove these.
func (r *Report) other() (rules, leftovers, commands string) {
	var tables, begin, names []string
	for _, e := range r.Host.Evidence {
		if e.Backend == r.Host.Mode {
			continue
		}
		for _, t := range e.Tables {
			if t.Rules.Min > 0 {
				tables = append(tables, fmt.Sprintf("%d in %s %s %s", t.Rules.Min, e.Backend, e.Family, t.Name))
			}
			begin = append(begin, prefixes(t.Chains)...)
			stale := r.leftover(e.Family, t)
			if len(stale) > 0 && r.Host.Conclusive {
				names = append(names, fmt.Sprintf("%s (%s %s)", strings.Join(stale, ", "), e.Family, t.Name))
				commands += removal(e, t, stale)
			}
		}
	}
	rules = strings.Join(tables, ", ")
	begin = unique(begin)
	if rules != "" && len(begin) > 0 {
		rules += ", with chains " + strings.Join(begin, ", ")
	}
	return rules, strings.Join(names, ", "), commands
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

// unique drops what was there before.
func unique(words []string) (once []string) {
	for _, word := range words {
		if !slices.Contains(once, word) {
			once = append(once, word)
		}
	}
	return once
}

// leftover returns the chains of a table that the host's backend has under the same name, and kubelet's.
func (r *Report) leftover(f detect.Family, t detect.Table) (stale []string) {
	for _, chain := range t.Chains {
		twice := slices.ContainsFunc(r.Host.Of(r.Host.Mode, f).Tables, func(h detect.Table) bool {
			return h.Name == t.Name && slices.Contains(h.Chains, chain)
		})
		kubelets := chain == detect.HintChain || chain == detect.CanaryChain
		if plain.MatchString(chain) && (twice || kubelets) {
			stale = append(stale, chain)
		}
	}
	return stale
}

// removal is a command that removes chains. Restoring a table replaces it by what is left.
func removal(e detect.Evidence, t detect.Table, chains []string) string {
	prefix := "iptables-"
	if e.Family == detect.IPv6 {
		prefix = "ip6tables-"
	}
	save := programs.Single(e.Backend, prefix)
	return fmt.Sprintf("\n%ssave -t %s | grep -vE '[: ](%s)( |$)' | %srestore",
		save, t.Name, strings.Join(chains, "|"), save)
}
