// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"slices"
	"strings"
)

// Listed is what other programs print of a host.
type Listed struct {
	Names []string // chains as "ip mangle NAME", tables as "ip NAME"
	Rules int
}

// ByNFT adds what "nft -j list ruleset" prints. Only rules in iptables' tables count.
func (l *Listed) ByNFT(ruleset string) error {
	type object struct{ Family, Name, Table string }
	var list struct {
		NFTables []struct{ Table, Chain, Rule *object }
	}
	err := json.Unmarshal([]byte(ruleset), &list)
	for _, item := range list.NFTables {
		switch {
		case item.Table != nil:
			l.Names = append(l.Names, item.Table.Family+" "+item.Table.Name)
		case item.Chain != nil:
			l.Names = append(l.Names, item.Chain.Family+" "+item.Chain.Table+" "+item.Chain.Name)
		case item.Rule != nil && slices.Contains([]string{"ip", "ip6"}, item.Rule.Family) &&
			slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, item.Rule.Table):
			l.Rules++
		}
	}
	return err
}

// BySave adds what iptables-legacy-save prints, or ip6tables-legacy-save. family is "ip" or "ip6".
func (l *Listed) BySave(family, saved string) {
	table := ""
	for line := range strings.Lines(saved) {
		name, _, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
		switch line[0] {
		case '*':
			table = family + " " + name
		case ':':
			l.Names = append(l.Names, table+" "+name)
		case '-':
			l.Rules++
		}
	}
}
