// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// listedTable is a table of nf_tables as a list of all has it.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_TABLE_NAME   string
//	NFTA_TABLE_FLAGS  __be32: NFT_TABLE_F_DORMANT 1, NFT_TABLE_F_OWNER 2
type listedTable struct {
	name  string // as nft names it: "inet firewalld"
	flags uint32
}

const flagOwner = 2 // NFT_TABLE_F_OWNER, since Linux 5.12

// lookForFaults finds them in the tables and chains that were listed.
func (p *prober) lookForFaults() {
	for i, f := range families {
		p.evidence[i].Faults = slices.Concat(faultyTables(f, p.tables), faultyChains(p.counted[i].chains))
	}
}

// faultyTables are those of the five tables of a family in which iptables-nft has no effect, or fails.
func faultyTables(f Family, tables []listedTable) (faults []Fault) {
	for _, name := range tableNames {
		i := slices.IndexFunc(tables, func(t listedTable) bool { return t.name == f.qualified(name) })
		if i < 0 {
			continue
		}
		if tables[i].flags&unix.NFT_TABLE_F_DORMANT != 0 {
			faults = append(faults, Fault{Kind: FaultDormant, Table: name})
		}
		if tables[i].flags&flagOwner != 0 {
			faults = append(faults, Fault{Kind: FaultOwned, Table: name})
		}
	}
	return faults
}

// faultyChains are the chains of the five tables that have the name of a chain that iptables hooks into the kernel, and
// are not hooked. iptables-nft lists such a chain as one that somebody made with -N, beside its own of the same name.
func faultyChains(tables [len(tableNames)]nftTable) (faults []Fault) {
	for i, t := range tables {
		builtIn := strings.Fields(builtInChains(tableNames[i]))
		for _, chain := range t.users {
			if slices.Contains(builtIn, chain) {
				faults = append(faults, Fault{Kind: FaultNotHooked, Table: tableNames[i], Chain: chain})
			}
		}
	}
	return faults
}
