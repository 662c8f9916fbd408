// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
)

// longest is the length of the longest line of a fact, and room what is left of it for a list.
const (
	longest = 200
	room    = 180
)

// fit joins as many as fit in so many bytes, at most eight, and says how many more there are: "a, b and 2993 more".
func fit(room int, separator string, all []string) string {
	const most = 8
	text := ""
	for i, one := range all {
		with := strings.TrimPrefix(text+separator+one, separator)
		if i == most || len(with) > room {
			return strings.TrimPrefix(text+" and "+strconv.Itoa(len(all)-i)+" more", " and ")
		}
		text = with
	}
	return text
}

func list(all []string) string { return fit(room, ", ", all) }

// cut cuts a line that is too long.
func cut(line string, room int) string {
	const sign = "..."
	if len(line) > room {
		line = strings.ToValidUTF8(line[:room-len(sign)], "") + sign
	}
	return line
}

// isPlain matches a text that is one word for a shell, and for people.
var isPlain = regexp.MustCompile(`^[\w./:+@%,-]*$`)

// quoted is a path as one word for a shell.
func quoted(path string) string {
	if isPlain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// plain is a name that somebody in the network has chosen, as one word for people.
func plain(name string) string {
	if isPlain.MatchString(name) {
		return name
	}
	return quote(name)
}

// quote is the name of a chain.
func quote(chain string) string { return strconv.QuoteToASCII(chain) }

// filter returns those of which something is true, and each the results of a function.
func filter[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !is(one) })
}

func each[T, R any](all []T, of func(T) R) (results []R) {
	for _, one := range all {
		results = append(results, of(one))
	}
	return results
}

// lines are those of a text that are not empty, without the spaces around them.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}

// oneLine is the text of an error, which may have several lines.
func oneLine(err error) string { return strings.Join(lines(err.Error()), "; ") }

// sentence makes one of a text.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// about is a sentence about some things, "" if there are none.
func about(format string, things []string) string {
	if len(things) == 0 {
		return ""
	}
	return fmt.Sprintf(format, fit(2*room, ", ", things))
}

// What the tables have.

// isOf reports whether a table is one of iptables' in a backend.
func isOf(t rules.Table, b detect.Backend) bool { return t.Backend == b && !t.Native }

func familyOf(t rules.Table) detect.Family {
	return map[string]detect.Family{"ip6": detect.IPv6}[t.Family]
}

func title(t rules.Table) string { return t.Family + " " + plain(t.Name) }

// What may be true of a table. Docker's rules that answer a container's DNS are in each network of Docker's.
func hasRules(t rules.Table) bool { return t.Rules > t.DNS }
func acts(t rules.Table) bool     { return t.Acts > 0 || len(t.Policies) > 0 }
func isUsed(t rules.Table) bool   { return !t.Dormant && (hasRules(t) || t.More || len(t.Policies) > 0) }

// describe is "ip filter 3 rules (1 made with nft, 2 drop or redirect), policy DROP of FORWARD".
func describe(t rules.Table) string {
	var parts []string
	counts := map[string]int{"drop or redirect": t.Acts, "made with nft": t.NFTMade, "of Docker's DNS": t.DNS}
	for what, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	slices.Sort(parts)
	number := strconv.Itoa(t.Rules) + " rules"
	switch {
	case t.More:
		number = map[detect.Backend]string{detect.NFT: "at least ", detect.Legacy: "about "}[t.Backend] + number
	case t.Rules == 1:
		number = "1 rule"
	}
	text := title(t) + " " + number + about(" (%s)", parts)
	for _, p := range t.Policies {
		text += ", policy " + p.Policy + " of " + plain(p.Chain)
	}
	return text
}

// used are the tables of iptables in a backend that packets may meet something in.
func (s *state) used(b detect.Backend) []rules.Table {
	return filter(s.tables, func(t rules.Table) bool { return isOf(t, b) && isUsed(t) })
}

// describeAll is a fact about tables, first of those that drop or redirect.
func describeAll(tables []rules.Table) string {
	weight := func(t rules.Table) int { return t.Acts + len(t.Policies) }
	slices.SortStableFunc(tables, func(a, b rules.Table) int { return weight(b) - weight(a) })
	return fit(room, "; ", each(tables, describe))
}

// has is a fact: what a backend has in the tables of iptables.
func (s *state) has(b detect.Backend) string {
	nothing := "none"
	if s.errors[b] != nil {
		nothing = "not known"
	}
	return cmp.Or(describeAll(s.used(b)), nothing)
}

// chains are the names of user-defined chains, by which an operator knows whose they are.
func chains(tables []rules.Table) (all []string) {
	for _, t := range tables {
		all = append(all, each(t.Chains, quote)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
