// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// nftAsker asks nf_tables. Those of its tables that matter are listed once, when has first needs them.
type nftAsker struct {
	conn   nft.Conn
	kernel Answer
	err    error // why nothing can be asked

	listed bool
	tables []string // as nft prints them
	failed error    // why the tables are not known
}

func newNFTAsker() *nftAsker {
	a := &nftAsker{}
	present, err := a.conn.Present()
	if err != nil {
		a.err = fmt.Errorf("ask for nf_tables: %w", err)
	}
	a.kernel = answerOf(present, err)
	return a
}

func (a *nftAsker) close() { a.conn.Close() }

// has reports whether the name exists.
func (a *nftAsker) has(n Name) (Answer, error) {
	if a.kernel != Yes {
		return a.kernel, nil
	}
	if n.Program == kubelet {
		has, err := a.conn.HasChain(n.Family == IPv6, n.Table, n.Chain)
		return answerOf(has, err), err
	}
	err := a.list()
	switch {
	case errors.Is(err, nft.ErrTooLarge):
		return Unknown, nil
	case err != nil:
		return Unknown, err
	case n.Chain == "":
		return answerOf(slices.Contains(a.tables, n.Table), nil), nil
	case !slices.Contains(a.tables, qualified(n.Family, n.Table)):
		return No, nil
	}
	has, err := a.conn.HasChain(n.Family == IPv6, n.Table, n.Chain)
	return answerOf(has, err), err
}

// list lists the tables at the first call. Later calls return the same error.
func (a *nftAsker) list() error {
	if a.listed {
		return a.failed
	}
	a.listed = true
	var tables []nft.Table
	a.failed = persist(func() (err error) {
		tables, err = a.conn.Tables(isAsked)
		return err
	})
	for _, t := range tables {
		a.tables = append(a.tables, nameOf(t))
	}
	return a.failed
}

// isAsked reports whether has asks for a table, or for a chain in it.
func isAsked(t nft.Table) bool {
	name := nameOf(t)
	return usedByIptables(t) || slices.ContainsFunc(knownNames[:], func(n Name) bool { return n.Table == name })
}

// nameOf returns the name of a table as nft prints it.
func nameOf(t nft.Table) string {
	switch t.Family {
	case unix.NFPROTO_INET:
		return "inet " + t.Name
	case unix.NFPROTO_IPV4:
		return qualified(IPv4, t.Name)
	case unix.NFPROTO_IPV6:
		return qualified(IPv6, t.Name)
	default:
		return "other " + t.Name
	}
}

// count counts the rules of nf_tables until there are more than limit. counted is Yes if rules are all of them. With an
// error, rules are those that the last try read.
func (a *nftAsker) count(limit int) (rules nft.Rules, counted Answer, err error) {
	switch a.kernel {
	case No:
		return nft.Rules{}, Yes, nil
	case Unknown:
		return nft.Rules{}, Unknown, nil
	}
	err = persist(func() (err error) {
		rules, err = a.conn.CountRules(limit, usedByIptables)
		return err
	})
	if rules.All {
		return rules, Yes, err
	}
	return rules, Unknown, err
}

// usedByIptables reports whether iptables uses a table of nf_tables.
func usedByIptables(t nft.Table) bool {
	if t.Family != unix.NFPROTO_IPV4 && t.Family != unix.NFPROTO_IPV6 {
		return false
	}
	switch t.Name {
	case "filter", "nat", "mangle", "raw", "security":
		return true
	}
	return false
}

// legacyAsker asks x_tables about one family. Each table is read once, when it is first needed.
type legacyAsker struct {
	family Family
	kernel Answer
	listed []string
	err    error // why the list is not known
	read   map[string]xtables.Table
}

func newLegacyAsker(f Family) *legacyAsker {
	a := &legacyAsker{family: f}
	listed, err := xtables.Listed(f == IPv6)
	a.listed = listed
	switch {
	case errors.Is(err, xtables.ErrAbsent):
		a.kernel = No
	case err != nil:
		a.kernel = Unknown
		a.err = fmt.Errorf("list the tables: %w", err)
	default:
		a.kernel = Yes
	}
	return a
}

// table returns a listed table. It returns the error of reading the table only once. After that, the table is just not
// Whole.
func (a *legacyAsker) table(name string) (t xtables.Table, err error) {
	t, known := a.read[name]
	if known {
		return t, nil
	}
	err = persist(func() (err error) {
		t, err = xtables.Read(a.family == IPv6, name)
		return err
	})
	t.Chains = telling(t.Chains)
	if a.read == nil {
		a.read = map[string]xtables.Table{}
	}
	a.read[name] = t
	return t, err
}

// telling returns copies of the chains' names that prove something. The others are pieces of the table: they would keep
// all of it in memory, up to xtables.Limit for each of ten tables.
func telling(chains [][]byte) (copies [][]byte) {
	for _, chain := range chains {
		isKnown := func(n Name) bool { return n.Chain == string(chain) }
		if slices.ContainsFunc(knownNames[:], isKnown) {
			copies = append(copies, slices.Clone(chain))
		}
	}
	return copies
}

// has reports whether the name exists. Legacy has no native tables.
func (a *legacyAsker) has(n Name) (Answer, error) {
	switch {
	case a.kernel == Unknown:
		return Unknown, nil
	case n.Chain == "", !slices.Contains(a.listed, n.Table):
		return No, nil
	}
	t, err := a.table(n.Table)
	switch {
	case t.HasChain(n.Chain):
		return Yes, nil
	case !t.Whole:
		return Unknown, err
	default:
		return No, nil
	}
}

// count counts the rules of all listed tables. counted is Yes if every table was read whole.
func (a *legacyAsker) count() (rules int, counted Answer, err error) {
	counted = Yes
	if a.kernel == Unknown {
		counted = Unknown
	}
	for _, name := range a.listed {
		t, unread := a.table(name)
		rules += t.Rules
		err = join(err, unread)
		if !t.Whole {
			counted = Unknown
		}
	}
	return rules, counted, err
}
