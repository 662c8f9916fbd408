// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// hasNFT reports whether a marker is in nf_tables, which the kernel has.
func (a *asker) hasNFT(m Marker) (Answer, error) {
	table := m.Table
	if m.Chain == "" {
		_, table, _ = strings.Cut(table, " ") // without the family
	}
	exists, err := a.hasTable(m.Family, table)
	if exists != Yes || m.Chain == "" {
		return exists, err
	}
	has, err := a.nft.HasChain(m.Family == IPv6, m.Table, m.Chain)
	return answerOf(has, err), err
}

// nftTable is whether nf_tables has a table.
type nftTable struct {
	family Family
	name   string
	exists Answer
}

// hasTable reports whether nf_tables has a table. It asks once, and only then returns an error: most hosts lack most
// tables, and the chains of a missing one need no question.
func (a *asker) hasTable(f Family, name string) (Answer, error) {
	for _, t := range a.tables {
		if t.family == f && t.name == name {
			return t.exists, nil
		}
	}
	has, err := a.nft.HasTable(f == IPv6, name)
	exists := answerOf(has, err)
	a.tables = append(a.tables, nftTable{family: f, name: name, exists: exists})
	return exists, err
}

// countNFT counts the rules in the tables of iptables, until there are more than limit. It is no failure if the rules
// change meanwhile: the number is what the last try counted.
func (a *asker) countNFT(e Evidence, limit int) Evidence {
	rules := nft.Rules{All: e.NFT.Kernel == No}
	var err error
	if e.NFT.Kernel == Yes {
		err = iptables.Persist(func() (err error) {
			rules, err = a.nft.CountRules(limit, iptables.Tables())
			return err
		})
	}
	e.NFT.Rules = rules.Number // with an error, those that the last try read
	switch {
	case rules.All:
		e.NFT.Counted = Yes
	case rules.More:
		e.NFT.Counted = No
	default:
		e.NFT.Counted = Unknown
	}
	if rules.Number > 0 {
		e.TakesRules = Yes
	}
	if !errors.Is(err, iptables.ErrChanged) {
		e.NFT.Err = cmp.Or(e.NFT.Err, err)
	}
	return e
}

// legacyTables are the tables of x_tables for one family. Each is read once, when it is first needed.
type legacyTables struct {
	family Family
	loaded Answer
	listed []string
	read   map[string]legacyTable
}

type legacyTable struct {
	xtables.Table
	err error // then it is not Whole
}

// table returns a listed table.
func (l *legacyTables) table(name string) legacyTable {
	t, isRead := l.read[name]
	if isRead {
		return t
	}
	t.err = iptables.Persist(func() (err error) {
		t.Table, err = xtables.Read(l.family == IPv6, name, isKnownChain)
		return err
	})
	if l.read == nil {
		l.read = map[string]legacyTable{}
	}
	l.read[name] = t
	return t
}

func isKnownChain(chain []byte) bool {
	return slices.ContainsFunc(knownMarkers[:], func(m Marker) bool { return m.Chain == string(chain) })
}

// has reports whether a marker exists. Legacy has no native tables.
func (l *legacyTables) has(m Marker) (Answer, error) {
	switch {
	case l.loaded == Unknown:
		return Unknown, nil
	case m.Chain == "", !slices.Contains(l.listed, m.Table):
		return No, nil
	}
	t := l.table(m.Table)
	switch {
	case slices.Contains(t.Chains, m.Chain):
		return Yes, nil
	case !t.Whole:
		return Unknown, t.err
	}
	return No, nil
}

func (l *legacyTables) count(f Findings) Findings {
	if l.loaded == Unknown {
		f.Counted = Unknown
	}
	for _, name := range l.listed {
		t := l.table(name)
		f.Rules += t.Rules
		f.Err = cmp.Or(f.Err, t.err)
		if !t.Whole {
			f.Counted = Unknown
		}
	}
	return f
}
