// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
)

// What the tables have, in words.

// isOf reports whether a table is one of iptables' in a backend.
func isOf(t rules.Table, b detect.Backend) bool { return t.Backend == b && !t.Native }

func familyOf(t rules.Table) detect.Family {
	if t.Family == "ip6" {
		return detect.IPv6
	}
	return detect.IPv4
}

func title(t rules.Table) string { return t.Family + " " + plain(t.Name) }

// counted is the number of rules that count: Docker's, which answer a container's DNS, are in each network of Docker's.
func counted(t rules.Table) int { return t.Rules - t.DNS }

// isUsed reports whether packets may meet something there.
func isUsed(t rules.Table) bool { return counted(t) > 0 || t.More || len(t.Policies) > 0 }

// acts reports whether packets may be dropped or redirected there.
func acts(t rules.Table) bool { return t.Acts > 0 || len(t.Policies) > 0 }

// describe is "ip filter 3 rules (2 drop or redirect, 1 made with nft), policy DROP of FORWARD".
func describe(t rules.Table) string {
	text := title(t) + " " + number(t.Rules, t.More, "rule")
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{t.Acts, "drop or redirect"}, {t.NFTMade, "made with nft"}, {t.DNS, "of Docker's DNS"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	for _, p := range t.Policies {
		text += ", policy " + p.Policy + " of " + plain(p.Chain)
	}
	return text
}

// which are the tables of which something is true.
func (s *state) tablesThat(is func(rules.Table) bool) (some []rules.Table) {
	for _, t := range s.tables {
		if is(t) {
			some = append(some, t)
		}
	}
	return some
}

// has is a fact: what a backend has in iptables' tables.
func (s *state) has(b detect.Backend) string {
	used := s.tablesThat(func(t rules.Table) bool { return isOf(t, b) && isUsed(t) })
	slices.SortStableFunc(used, func(a, b rules.Table) int { return b.Acts + len(b.Policies) - a.Acts - len(a.Policies) })
	text := fit(room, "; ", each(used, describe))
	switch {
	case s.errors[b] != nil && text == "":
		return "not known"
	case text == "":
		return "none"
	}
	return text
}

// native is a fact: the tables that iptables does not list.
func (s *state) native() string {
	return fit(room, "; ", each(s.tablesThat(func(t rules.Table) bool { return t.Native }), describe))
}

// chains names the user-defined chains in the tables, by which an operator knows whose they are.
func chains(tables []rules.Table) string {
	var all []string
	for _, t := range tables {
		for _, chain := range t.Chains {
			name := fmt.Sprintf("%+q", chain)
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return list(all)
}
