// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package rules counts what the tables of both backends contain, for doctor. Of a rule, it reads the target and the
// names of its expressions, and no condition.
package rules

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
)

// Table is one table that exists. Packets pass it, whether iptables lists it or not.
type Table struct {
	Backend detect.Backend `json:"backend"`
	// Native: it is of nf_tables, and not one of iptables' tables. Only its rules and policies are counted.
	Native   bool        `json:"native,omitempty"`
	Family   string      `json:"family"`                  // as nft prints it: "ip", "inet"
	Name     string      `json:"table"`                   // "filter"
	Rules    int         `json:"rules"`                   // without policies; of a large legacy table, all entries
	More     bool        `json:"more,omitempty"`          // there are more, or not all could be read
	Acts     int         `json:"acts,omitempty"`          // drop or redirect; not KUBE-FIREWALL's, not Docker DNS's
	DNS      int         `json:"dns,omitempty"`           // of Docker's DNS, with one jump for each of their chains
	NFTMade  int         `json:"made_with_nft,omitempty"` // rules that nft made in a table of iptables
	MadeIn   []string    `json:"made_in,omitempty"`       // the chains with such rules, at most 64
	Policies []Policy    `json:"policies,omitempty"`      // those that are not ACCEPT
	Chains   []string    `json:"chains,omitempty"`        // names of user-defined chains, at most 64
	Owned    bool        `json:"owned,omitempty"`         // only the process that made the table can change it
	Dormant  bool        `json:"dormant,omitempty"`       // its rules do nothing
	Wrong    []BaseChain `json:"wrong,omitempty"`         // iptables' base chains that are made otherwise
}

// Policy is that of a base chain. Chain is its name, or if the table is native, its hook.
type Policy struct {
	Chain  string `json:"chain"`
	Policy string `json:"policy"`
}

// BaseChain is a base chain of iptables as it is, and as iptables-nft makes it.
type BaseChain struct {
	Chain string `json:"chain"`
	Is    Hook   `json:"is"`
	Want  Hook   `json:"want"`
}

// Hook is where packets pass a base chain. The zero Hook is that of other chains.
type Hook struct {
	Hook     string `json:"hook,omitempty"` // "input"
	Type     string `json:"type,omitempty"` // "filter"
	Priority int    `json:"priority"`
}

// String describes the hook as nft does.
func (h Hook) String() string {
	if h.Hook == "" {
		return "no hook"
	}
	return fmt.Sprintf("type %s hook %s priority %d", h.Type, h.Hook, h.Priority)
}

// Read reads the tables of both backends in the network namespace of the calling thread. Without hasNFT, it asks
// nothing of nf_tables: each question would make the kernel look for the module. With an error of a backend, its tables
// are what could be read. A table that is too large is no error.
func Read(hasNFT bool) (tables []Table, errNFT, errLegacy error) {
	if hasNFT {
		tables, errNFT = readNFT()
	}
	legacy, errLegacy := readLegacy()
	return append(tables, legacy...), errNFT, errLegacy
}

func readLegacy() (tables []Table, err error) {
	for _, family := range []string{"ip", "ip6"} {
		names, _, failed := xtables.Listed(family == "ip6")
		err = cmp.Or(err, failed)
		for _, name := range names {
			t := Table{Backend: detect.Legacy, Family: family, Name: name}
			err = cmp.Or(err, iptables.Persist(t.readLegacy))
			tables = append(tables, t)
		}
	}
	return tables, err
}

// readLegacy reads a table of x_tables. Built-in chains come first. The entry that returns from a chain of Docker's DNS
// counts for the jump to it.
func (t *Table) readLegacy() error {
	*t = t.empty()
	chain := ""
	read, err := xtables.ReadEntries(t.Family == "ip6", t.Name, func(e xtables.Entry) {
		switch {
		case e.Head != "":
			chain = e.Head
			t.Chains = note(t.Chains, chain)
		case e.Policy == "":
			t.count(chain, acts(e.Target, e.Revision, e.Info))
		case e.Target != "ACCEPT":
			t.Policies = note(t.Policies, Policy{Chain: e.Policy, Policy: e.Target})
		}
	})
	t.Rules, t.More = read.Rules, !read.Whole
	return err
}

// empty is the table before any of its rules is read.
func (t *Table) empty() Table {
	return Table{
		Backend: t.Backend, Native: t.Native, Family: t.Family, Name: t.Name, Owned: t.Owned, Dormant: t.Dormant,
	}
}

// count counts a rule of a chain that drops or redirects, or is Docker's.
func (t *Table) count(chain string, acts bool) {
	switch {
	case t.Name == "nat" && (chain == "DOCKER_OUTPUT" || chain == "DOCKER_POSTROUTING"):
		t.DNS++
	case acts && (t.Name != "filter" || chain != "KUBE-FIREWALL"):
		t.Acts++
	}
}

// acts reports whether a target of x_tables drops or redirects.
//
//	struct xt_NFQ_info_v2 {
//		__u16 queuenum;
//		__u16 queues_total;
//		__u16 bypass;        // in v3 flags, of which NFQ_FLAG_BYPASS is the first
//	};
func acts(target string, revision int, info []byte) bool {
	switch target {
	case "DROP", "REJECT", "QUEUE", "DNAT", "REDIRECT", "TPROXY", "NETMAP":
		return true
	case "NFQUEUE":
		return revision < 2 || len(info) < 6 || binary.NativeEndian.Uint16(info[4:])&1 == 0
	}
	return false
}

// note adds what is new to a list that does not get longer than 64.
func note[T comparable](list []T, one T) []T {
	if len(list) == 64 || slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
