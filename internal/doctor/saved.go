// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// saved is a table as iptables-save prints it.
type saved struct {
	family   detect.Family
	name     string
	policies []policy // of the built-in chains
	chains   []string // the others, even those without rules
	rules    []savedRule
	omits    bool            // there may be more rules than were printed
	native   map[string]bool // chains with rules that may be others than those that were printed
}

type policy struct{ chain, verdict string }

type savedRule struct {
	chain     string
	target    string // of -j or -g: a chain, a verdict or an extension; "" if there is none
	diverts   bool   // by -g: RETURN in that chain does not come back here
	remembers bool   // it has a match that leaves something behind for which other rules may ask
	inexact   bool   // it may be another one than was printed, so it is like no rule of another table
	spec      string // all that follows the chain, but no comment
}

func (rule savedRule) unconditional() bool {
	return strings.HasPrefix(rule.spec, "-j ") || strings.HasPrefix(rule.spec, "-g ")
}

// accept is the policy that lets a packet pass that no rule has decided about, and the target that does so at once.
const accept = "ACCEPT"

// saveOther lists the tables of the backend that the host does not use, where it has any, and those of the host's own
// to compare with, where chains are left over.
func (r *Report) saveOther(n layout.Names, dir string) {
	other := otherMode(r.Host.Mode)
	_, err := exec.LookPath(single(other, detect.IPv4, "-restore"))
	r.otherNotInPath = err != nil
	r.saved = r.save(n, dir, other)
	if len(r.removals()) > 0 {
		r.savedHost = r.save(n, dir, r.Host.Mode)
	}
}

// save lists a backend's tables, of the families of which the backend that the host does not use has some.
func (r *Report) save(n layout.Names, dir string, backend detect.Mode) (tables []saved) {
	p, works := r.working(backend)
	if !works {
		return nil
	}
	for _, family := range families {
		if len(r.Host.Of(otherMode(r.Host.Mode), family).Tables) == 0 {
			continue
		}
		name := commandOf(family, "-save")
		program, err := n.Find(dir, backend, name)
		if err != nil {
			continue
		}
		stdout, _, err := r.start(n.Tree, program, name)
		if err != nil {
			continue
		}
		listed := parseSaved(family, stdout)
		if backend == detect.NFT {
			markInexact(family, listed, install.LosesRules(p.Version))
		}
		tables = append(tables, listed...)
	}
	return tables
}

// markInexact marks the tables and chains that iptables-nft may not have printed as they are.
func markInexact(family detect.Family, tables []saved, loses bool) {
	known, err := rulesInKernel(family, loses)
	for i := range tables {
		t := &tables[i]
		t.native = map[string]bool{}
		listed := map[string]int{}
		for j := range t.rules {
			rule := &t.rules[j]
			rule.inexact = known[t.name].native[rule.chain][listed[rule.chain]]
			if rule.inexact {
				t.native[rule.chain] = true
			}
			listed[rule.chain]++
		}
		t.omits = err != nil || !maps.Equal(known[t.name].rules, listed)
	}
}

// exact reports that a table is as it was printed.
func (t *saved) exact() bool { return !t.omits && !t.ambiguous() && len(t.native) == 0 }

// ambiguous reports that a chain has the name of a target, as nft permits: "-j LOG" may then lead to that chain.
func (t *saved) ambiguous() bool {
	targets := slices.Concat([]string{accept}, passing, dropping)
	return slices.ContainsFunc(t.chains, func(chain string) bool { return slices.Contains(targets, chain) })
}

// parseSaved reads what iptables-save prints:
//
//	*filter
//	:FORWARD DROP [0:0]
//	:DOCKER - [0:0]
//	-A FORWARD -m comment --comment "two words" -j DOCKER
//	COMMIT
func parseSaved(family detect.Family, text string) (tables []saved) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, begins := strings.CutPrefix(line, "*")
		if begins {
			tables = append(tables, saved{family: family, name: name})
		}
		if len(tables) == 0 {
			continue
		}
		t := &tables[len(tables)-1]
		words := splitSaved(line)
		switch {
		case strings.HasPrefix(line, ":") && len(words) > 1 && words[1] == "-":
			t.chains = append(t.chains, strings.TrimPrefix(words[0], ":"))
		case strings.HasPrefix(line, ":") && len(words) > 1:
			t.policies = append(t.policies, policy{strings.TrimPrefix(words[0], ":"), words[1]})
		case strings.HasPrefix(line, "-A ") && len(words) > 1:
			t.rules = append(t.rules, parseRule(words))
		}
	}
	return tables
}

// remembering are the matches whose effect lasts beyond their rule, see iptables-extensions(8). In this order: they
// label the connection, use up a rate that other rules share, count towards a quota, list an address, mark the packet.
var remembering = []string{"connlabel", "hashlimit", "nfacct", "recent", "socket"}

func parseRule(words []string) savedRule {
	rule := savedRule{chain: words[1], spec: strings.Join(withoutComments(words[2:]), " ")}
	for i, word := range words[:len(words)-1] {
		next := words[i+1]
		switch {
		case rule.target == "" && (word == "-j" || word == "-g"):
			rule.target = next
			rule.diverts = word == "-g"
		case word == "-m" && slices.Contains(remembering, next):
			rule.remembers = true
		}
	}
	return rule
}

// withoutComments leaves out "-m comment --comment TEXT".
func withoutComments(words []string) (rest []string) {
	for i := 0; i < len(words); i++ {
		if words[i] == "-m" && i+3 < len(words) && words[i+1] == "comment" {
			i += 3
			continue
		}
		rest = append(rest, words[i])
	}
	return rest
}

// splitSaved splits a line at its spaces, except in double quotes, in which a backslash stands before what is meant
// literally. A quoted word keeps its first quote, so that it is not taken for an option. iptables-save leaves a
// comment of one word without quotes: one that is "-j" is taken for an option, and the removal may count as unsafe.
func splitSaved(line string) (words []string) {
	var word strings.Builder
	quoted, escaped := false, false
	for _, c := range []byte(line) {
		switch {
		case escaped:
			escaped = false
			word.WriteByte(c)
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			if !quoted {
				word.WriteByte(c)
			}
			quoted = !quoted
		case c == ' ' && !quoted:
			words = append(words, word.String())
			word.Reset()
		default:
			word.WriteByte(c)
		}
	}
	return append(words, word.String())
}

// find returns a table as it was saved, nil if it was not.
func find(tables []saved, family detect.Family, name string) *saved {
	for i := range tables {
		if tables[i].family == family && tables[i].name == name {
			return &tables[i]
		}
	}
	return nil
}

// inChains returns the rules of some chains.
func (t *saved) inChains(chains []string) (rules []savedRule) {
	in := set(chains)
	for _, rule := range t.rules {
		if in[rule.chain] {
			rules = append(rules, rule)
		}
	}
	return rules
}

// isChain reports whether a target is a chain, not a verdict or an extension.
func (t *saved) isChain(target string) bool { return slices.Contains(t.chains, target) }

// reachable returns chains and those that their rules lead to.
func (t *saved) reachable(from ...string) []string {
	known, rules := set(t.chains), t.byChain()
	chains := slices.Clone(from)
	seen := set(from)
	for i := 0; i < len(chains); i++ {
		for _, rule := range rules[chains[i]] {
			if known[rule.target] && !seen[rule.target] {
				seen[rule.target] = true
				chains = append(chains, rule.target)
			}
		}
	}
	return chains
}
