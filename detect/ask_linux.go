// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// askNFT asks nf_tables for all names of a reason. It asks for chains of programs only in tables that exist.
func (a *asker) askNFT(f Findings, r Reason) Findings {
	known := f.Kernel
	tables := []string{"ip mangle", "ip6 mangle"} // kubelet's chains are asked for in any case
	if r == HostProgram && known == Yes {
		err := persist(func() (err error) {
			tables, err = a.nft.Tables(isAsked)
			return err
		})
		known = answerOf(true, err)
		if !errors.Is(err, nft.ErrTooLarge) {
			f.Err = cmp.Or(f.Err, err)
		}
	}
	for n := range namesOf(r) {
		answer, err := known, error(nil)
		if known == Yes {
			answer, err = a.hasNFT(n, tables)
		}
		f = f.note(n, answer, err)
	}
	return f
}

// isAsked reports whether a table is a known name, or may contain a chain that is.
func isAsked(table string) bool {
	isKnown := func(n Name) bool { return n.Table == table }
	return usedByIptables(table) || slices.ContainsFunc(knownNames[:], isKnown)
}

// hasNFT reports whether a name is in nf_tables, which has these tables.
func (a *asker) hasNFT(n Name, tables []string) (Answer, error) {
	exists := slices.Contains(tables, n.nftTable())
	if !exists || n.Chain == "" {
		return answerOf(exists, nil), nil
	}
	has, err := a.nft.HasChain(n.Family == IPv6, n.Table, n.Chain)
	return answerOf(has, err), err
}

// countNFT counts rules until there are more than limit and one of them is in a table of iptables.
func (a *asker) countNFT(e Evidence, limit int) Evidence {
	rules := nft.Rules{All: e.NFT.Kernel == No}
	var err error
	if e.NFT.Kernel == Yes {
		err = persist(func() (err error) {
			rules, err = a.nft.CountRules(limit, usedByIptables)
			return err
		})
	}
	e.NFT.Rules = rules.Number // with an error, those that the last try read
	e.NFT.Counted = Unknown
	if rules.All {
		e.NFT.Counted = Yes
	}
	if rules.Iptables {
		e.TakesRules = Yes
	}
	e.NFT.Err = cmp.Or(e.NFT.Err, err)
	return e
}

func usedByIptables(table string) bool {
	family, name, _ := strings.Cut(table, " ")
	switch name {
	case "filter", "nat", "mangle", "raw", "security":
		return family == "ip" || family == "ip6"
	}
	return false
}

// legacyTables are the tables of x_tables for one family. Each is read once, when it is first needed.
type legacyTables struct {
	family Family
	loaded Answer
	listed []string
	read   map[string]xtables.Table
}

// table returns a listed table. If reading it fails, only the first call returns the error: after that, the table is
// just not Whole.
func (l *legacyTables) table(name string) (t xtables.Table, err error) {
	t, isRead := l.read[name]
	if isRead {
		return t, nil
	}
	err = persist(func() (err error) {
		t, err = xtables.Read(l.family == IPv6, name, isKnownChain)
		return err
	})
	if l.read == nil {
		l.read = map[string]xtables.Table{}
	}
	l.read[name] = t
	return t, err
}

func isKnownChain(chain []byte) bool {
	return slices.ContainsFunc(knownNames[:], func(n Name) bool { return n.Chain == string(chain) })
}

// has reports whether a name exists. Legacy has no native tables.
func (l *legacyTables) has(n Name) (Answer, error) {
	switch {
	case l.loaded == Unknown:
		return Unknown, nil
	case n.Chain == "", !slices.Contains(l.listed, n.Table):
		return No, nil
	}
	t, err := l.table(n.Table)
	switch {
	case slices.Contains(t.Chains, n.Chain):
		return Yes, nil
	case !t.Whole:
		return Unknown, err
	}
	return No, nil
}

func (l *legacyTables) count(f Findings) Findings {
	if l.loaded == Unknown {
		f.Counted = Unknown
	}
	for _, name := range l.listed {
		t, err := l.table(name)
		f.Rules += t.Rules
		f.Err = cmp.Or(f.Err, err)
		if !t.Whole {
			f.Counted = Unknown
		}
	}
	return f
}
