// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"
	"slices"
)

// askPrograms looks for what programs of the host leave behind.
func (p *prober) askPrograms() {
	p.askNFTPrograms()
	p.askLegacyPrograms(p.most.programs)
}

// askNFTPrograms lists the tables once, and asks for each chain by its name where its table exists. The first chain is
// enough.
func (p *prober) askNFTPrograms() {
	tables, err := p.nft.listTables()
	p.tables = tables
	for i, f := range families {
		e := &p.evidence[i]
		e.fail(err)
		native := nativeTables(f, tables)
		e.Programs = hostTablesAmong(native)
		e.HostTable = answer(len(e.Programs) > 0)
		if err != nil && e.HostTable == No {
			e.HostTable = Unknown
		}
		if p.query.Everything {
			e.Native = native
		}
	}
	for i, f := range families {
		e := &p.evidence[i]
		e.HostChain = No
		for _, c := range hostChainsOf(f) {
			exists := slices.ContainsFunc(tables, func(t listedTable) bool { return t.name == f.qualified(c.table) })
			if err == nil && !exists {
				continue
			}
			_, has, err := p.nft.object(f, c.table, c.chain)
			e.fail(err)
			e.HostChain = either(e.HostChain, has)
			if has != Yes {
				continue
			}
			e.Programs = append(e.Programs, Program{Name: c.program, Table: c.table, Chain: c.chain})
			if !p.query.Everything {
				return
			}
		}
	}
}

// askLegacyPrograms reads the tables in which such chains can be, together no more bytes than this.
func (p *prober) askLegacyPrograms(most uint32) {
	for i := range families {
		e := &p.evidence[2+i]
		e.HostTable = No
		var err error
		e.Programs, e.HostChain, err = p.legacy[i].programs(&most)
		if !errors.Is(err, errTooMuch) { // the rest of the table can still be counted
			e.fail(err)
		}
		if e.HostChain == Yes && !p.query.Everything {
			return
		}
	}
}

// programs looks for chains of programs of the host, and says how much less may be read after that.
func (p *legacyProbe) programs(left *uint32) (found []Program, has Answer, err error) {
	if p.err != nil {
		return nil, Unknown, p.err
	}
	has = No
	for _, table := range tableNames {
		if len(hostChainsIn(p.family, table)) == 0 || !slices.Contains(p.tables, table) {
			continue
		}
		here, readErr := p.programsIn(table, left)
		if readErr != nil {
			has = either(has, Unknown)
			err = readErr
		}
		if len(here) > 0 {
			has = Yes
		}
		found = append(found, here...)
	}
	return found, has, err
}

// programsIn looks for them in a table that is listed. One that was read for its rules is not read again.
func (p *legacyProbe) programsIn(table string, left *uint32) ([]Program, error) {
	found, searched := p.searched[table]
	if searched {
		return found, nil
	}
	info, err := p.info(table)
	if err != nil {
		return nil, fmt.Errorf("read the header of legacy table %q: %w", table, err)
	}
	if !info.mayHaveUserChains(p.family) {
		return nil, nil
	}
	if info.size > *left {
		return nil, errTooMuch
	}
	*left -= info.size
	t, err := p.entries(table)
	return t.programs(p.family, table), err
}

// programs are those of the host that have made chains of the table.
func (t tableEntries) programs(f Family, table string) (found []Program) {
	for _, c := range hostChainsIn(f, table) {
		isOne := func(name []byte) bool { return string(name) == c.chain }
		if slices.ContainsFunc(t.chains, isOne) {
			found = append(found, Program{Name: c.program, Table: c.table, Chain: c.chain})
		}
	}
	return found
}

// hostChainsIn are the chains of programs of the host that can be in a table.
func hostChainsIn(f Family, table string) []hostChain {
	return slices.DeleteFunc(hostChainsOf(f), func(c hostChain) bool { return c.table != table })
}
