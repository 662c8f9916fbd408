// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// removal takes chains that are left over out of a table, with the rules that lead to them. What passed before must
// pass after it.
type removal struct {
	backend detect.Mode
	family  detect.Family
	table   string
	chains  []string
	open    []string // built-in chains whose policy becomes ACCEPT: what accepted in spite of it goes
	unsafe  bool     // other rules stay, and would drop what these chains accept; or that is not known
}

func (x removal) where() string { return fmt.Sprintf("%s %s %s", x.backend, x.family, x.table) }

// Targets after which a packet goes on with the next rule or, RETURN, in the chain that led here.
var passing = []string{
	"", "RETURN", "LOG", "NFLOG", "ULOG", "TRACE", "AUDIT", "MARK", "CONNMARK", "CT", "NOTRACK", "TCPMSS", "SET",
	"CLASSIFY", "DSCP", "TOS", "TTL", "HL", "CHECKSUM", "SECMARK", "CONNSECMARK", "RATEEST", "LED", "IDLETIMER",
}

// Targets that decide about a packet, to drop it or to let it pass.
var (
	dropping  = []string{"DROP", "REJECT", "TARPIT"}
	accepting = []string{accept, "DNAT", "SNAT", "MASQUERADE", "REDIRECT", "NETMAP"}
)

// planRemoval looks at what the chains decide about, and what would decide about it without them. A table that is
// known to have no rules needs no look.
func planRemoval(x removal, t *saved, empty bool) removal {
	if t == nil {
		x.unsafe = !empty
		return x
	}
	accepts := slices.ContainsFunc(t.inChains(x.chains), func(rule savedRule) bool {
		return !slices.Contains(passing, rule.target) && !slices.Contains(dropping, rule.target) &&
			!slices.Contains(x.chains, rule.target)
	})
	if !accepts {
		return x
	}
	for _, p := range t.policies {
		reached := t.reachable(p.chain)
		leads := slices.ContainsFunc(t.inChains(reached), func(rule savedRule) bool {
			return slices.Contains(x.chains, rule.target)
		})
		if !leads {
			continue
		}
		stay := x.staying(t, reached)
		switch {
		case slices.ContainsFunc(stay, func(rule savedRule) bool { return mayDrop(t, rule) }):
			x.unsafe = true
		case p.verdict == accept:
		case p.chain == "INPUT" && len(stay) > 0: // somebody's own firewall, which must not be opened
			x.unsafe = true
		default:
			x.open = append(x.open, p.chain)
		}
	}
	return x
}

// staying are the rules of chains that the removal leaves.
func (x removal) staying(t *saved, chains []string) (rules []savedRule) {
	for _, rule := range t.inChains(chains) {
		if !slices.Contains(x.chains, rule.chain) && !slices.Contains(x.chains, rule.target) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// mayDrop reports whether a rule may drop a packet itself. What is not known may.
func mayDrop(t *saved, rule savedRule) bool {
	known := slices.Contains(passing, rule.target) || slices.Contains(accepting, rule.target)
	return !known && !t.isChain(rule.target)
}

// command saves the table, drops the lines that are about the chains, and restores what is left. A jump to a chain is
// the end of its line, and what a comment says is in quotes.
func (x removal) command() string {
	chains := "(" + strings.Join(x.chains, "|") + ")"
	edit := fmt.Sprintf("/^(:|-A )%[1]s /d; / -[jg] %[1]s$/d", chains)
	if len(x.open) > 0 {
		edit += fmt.Sprintf(`; s/^:(%s) [A-Z]+ /:\1 %s /`, strings.Join(x.open, "|"), accept)
	}
	wait := ""
	if x.backend == detect.Legacy {
		wait = " -w 5"
	}
	return fmt.Sprintf("%s -t %s | sed -E '%s' | %s%s",
		single(x.backend, x.family, "-save"), x.table, edit, single(x.backend, x.family, "-restore"), wait)
}

// single is the name of the program for one command of a backend: "ip6tables-legacy-save".
func single(backend detect.Mode, family detect.Family, suffix string) string {
	if family == detect.IPv6 {
		return programs.Single(backend, "ip6tables"+suffix)
	}
	return programs.Single(backend, "iptables"+suffix)
}
