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
// pass after it, and what somebody blocks on purpose must not.
type removal struct {
	backend detect.Mode
	family  detect.Family
	table   string
	chains  []string
	opened  []string // built-in chains whose policy becomes ACCEPT, because what accepted in spite of it is removed
	unsafe  bool     // what stays may need what these chains do, or act on what they accept; or that is not known
	blocks  bool     // the chains or the policy drop what the host's own backend may let through

	// A node can have tens of thousands of chains, so they are looked up, not searched for.
	going map[string]bool // chains
	known map[string]bool // the user-defined chains of the table
}

// byHand reports that no command removes the chains.
func (x removal) byHand() bool { return x.unsafe || x.blocks || x.tooLong() }

func (x removal) where() string { return fmt.Sprintf("%s %s %s", x.backend, x.family, x.table) }

// Targets that leave a packet as it is, and with which it goes on: with the next rule or, RETURN, in the chain that led
// here.
var passing = []string{"RETURN", "LOG", "NFLOG", "ULOG", "TRACE", "AUDIT"}

// Targets that end a packet's way.
var dropping = []string{"DROP", "REJECT", "TARPIT"}

// planRemoval compares what happens to packets with the chains and without them, and with what happens in the same
// table of the host's own backend. A table that could not be listed is nil, be it this one, t, or the host's. One that
// is known to have no rules, empty, needs no look.
func planRemoval(x removal, t, host *saved, empty bool) removal {
	if t == nil {
		x.unsafe = !empty
		return x
	}
	if host == nil || !host.exact() {
		host = &saved{} // what is not known to be dropped there counts as let through
	}
	x.going, x.known = set(x.chains), set(t.chains)
	lost := x.lost(t)
	if x.mayMatter(t, lost) {
		x.unsafe = true
		return x
	}
	x.blocks = opens(t, host, lost)
	accepts := slices.ContainsFunc(lost, func(rule savedRule) bool { return rule.target == accept })
	if accepts {
		for _, p := range t.policies {
			x.stopAccepting(p, t, host)
		}
	}
	return x
}

// mayMatter reports that the lost rules may do more than decide about packets, or that this cannot be known.
func (x removal) mayMatter(t *saved, lost []savedRule) bool {
	unknown := t.omits || t.ambiguous()
	return unknown || x.diverts(t) ||
		slices.ContainsFunc(lost, func(rule savedRule) bool { return x.changes(t, rule) })
}

// stopAccepting plans for packets that come from one of the built-in chains, and that the chains accept now: they come
// to the rules that stay, and then to the policy.
func (x *removal) stopAccepting(p policy, t, host *saved) {
	reached := t.reachable(p.chain)
	leads := func(rule savedRule) bool { return x.going[rule.target] }
	if !slices.ContainsFunc(t.inChains(reached), leads) {
		return
	}
	stay := x.staying(t, reached)
	switch {
	case slices.ContainsFunc(stay, x.mayAct):
		x.unsafe = true
	case p.verdict == accept: // they pass all the same
	case !host.closes(p.chain, t), x.keepsOwn(t, reached, stay, host):
		x.blocks = true // somebody's own firewall, which must not be opened
	default:
		x.opened = append(x.opened, p.chain)
	}
}

// lost are the rules that no packet comes to any more, or not by these chains.
func (x removal) lost(t *saved) (rules []savedRule) {
	reached := set(t.reachable(x.chains...))
	for _, rule := range t.rules {
		if reached[rule.chain] || x.going[rule.target] {
			rules = append(rules, rule)
		}
	}
	return rules
}

// diverts reports that a rule outside these chains goes to one of them with -g. What the chain does not decide about
// then comes to none of the rules that follow; without that rule, it would.
func (x removal) diverts(t *saved) bool {
	return slices.ContainsFunc(t.rules, func(rule savedRule) bool {
		return rule.diverts && x.going[rule.target] && !x.going[rule.chain]
	})
}

// changes reports whether a rule may do more to a packet than to decide about it. Rules that stay, in this table or
// another, may ask for its mark or its connection, and routes may. Nor is known what a rule does that was printed as
// another one, if it goes.
func (x removal) changes(t *saved, rule savedRule) bool {
	fromOutside := x.going[rule.target] && !x.going[rule.chain]
	misprinted := t.native[rule.chain] && !fromOutside
	return misprinted || rule.remembers || x.mayAct(rule) && !slices.Contains(dropping, rule.target)
}

// staying are the rules of chains that the removal leaves.
func (x removal) staying(t *saved, chains []string) (rules []savedRule) {
	for _, rule := range t.inChains(chains) {
		if !x.going[rule.chain] && !x.going[rule.target] {
			rules = append(rules, rule)
		}
	}
	return rules
}

// keepsOwn reports whether one of the rules that stay in some chains is not among the host's, or may not be.
func (x removal) keepsOwn(t *saved, chains []string, stay []savedRule, host *saved) bool {
	inHost := set(host.rules)
	misprinted := slices.ContainsFunc(chains, func(chain string) bool {
		return t.native[chain] && !x.going[chain]
	})
	return misprinted || slices.ContainsFunc(stay, func(rule savedRule) bool { return !inHost[rule] })
}

// beside counts the rules that the removal leaves in the table, as far as that could be listed.
func (x removal) beside(t *saved) (count int) {
	if t == nil {
		return 0
	}
	for _, rule := range t.rules {
		if !x.going[rule.chain] && !x.going[rule.target] {
			count++
		}
	}
	return count
}

// mayAct reports whether a rule itself may do more to a packet than let it pass: drop it, mark it, change its address.
// A rule with an unknown target may. One without a target only counts packets, but iptables-nft also prints nft's
// rules with a verdict map like that.
func (x removal) mayAct(rule savedRule) bool {
	if rule.target == "" {
		return x.backend == detect.NFT
	}
	leads := x.going[rule.target] || x.known[rule.target]
	return !leads && rule.target != accept && !slices.Contains(passing, rule.target)
}

// maxEdits is how long an argument may be, with something to spare for a shell's -c: 32 pages, MAX_ARG_STRLEN in
// the kernel's include/uapi/linux/binfmts.h.
const maxEdits = 100_000

func (x removal) tooLong() bool { return len(x.edits()) > maxEdits }

// script has the saved table edited, and the result restored in one transaction. Where the table cannot be listed or
// edited, nothing is restored, and the command fails.
func (x removal) script() string {
	return fmt.Sprintf(`edits=$(%s -t %s | sed -E '%s') && test -n "$edits" && printf '%%s\n' "$edits" | %s -n%s`,
		single(x.backend, x.family, "-save"), x.table, x.edits(),
		single(x.backend, x.family, "-restore"), wait(x.backend))
}

// edits are for sed. They turn the saved table into commands that delete the chains and the rules that lead to them.
// No other rule is written again: iptables-nft may print another one than nft has made, with a set for example. A line
// ends with the jump to a chain; a comment is not at the end, or its end is a quote.
func (x removal) edits() string {
	chains := "(" + strings.Join(x.chains, "|") + ")"
	edits := []string{
		fmt.Sprintf("/^-A %s /d", chains),
		fmt.Sprintf(`s/^:%s .*/-F \1/`, chains),
		fmt.Sprintf(`s/^-A (.* -[jg] %s)$/-D \1/`, chains),
	}
	if len(x.opened) > 0 {
		edits = append(edits, fmt.Sprintf(`s/^:(%s) .*/-P \1 %s/`, strings.Join(x.opened, "|"), accept))
	}
	edits = append(edits,
		"/^([:#]|-A )/d",
		fmt.Sprintf(`s/^COMMIT/-X %s\n&/`, strings.Join(x.chains, `\n-X `)),
	)
	return strings.Join(edits, "; ")
}

// wait is the option with which a command waits for the lock, which iptables-legacy has.
func wait(backend detect.Mode) string {
	if backend == detect.Legacy {
		return " -w 5"
	}
	return ""
}

// single is the name of the program for one command of a backend: "ip6tables-legacy-save".
func single(backend detect.Mode, family detect.Family, suffix string) string {
	return programs.Single(backend, commandOf(family, suffix))
}

// commandOf is one of the six: "ip6tables-save".
func commandOf(family detect.Family, suffix string) string {
	if family == detect.IPv6 {
		return "ip6tables" + suffix
	}
	return "iptables" + suffix
}
