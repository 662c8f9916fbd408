// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// MaxObjects is how many objects of one dump a call reads, whatever somebody has put into the namespace.
const MaxObjects = 32 << 10

// ErrTooLarge means that a dump has more objects than are read.
var ErrTooLarge = errors.New("nf_tables has too many objects to read")

// absent reports whether an error is the kernel's reply that there is no such thing. The error of a system call that
// failed with the same errno, because a filter refuses it, is wrapped, and shows nothing.
func absent(err error) bool { return err == unix.ENOENT || err == ErrAbsent }

// family returns the number of ip or ip6 for nfgen_family.
func family(ipv6 bool) uint8 {
	if ipv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// Present reports whether the kernel has nf_tables, or loads it when it is asked. If not, nothing more should be asked:
// each question would make the kernel look for the module again. iptables-nft asks the same before it does anything
// (NFT_MSG_GETGEN).
func (c *Conn) Present() (bool, error) {
	err := c.ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(Message) error { return nil })
	if err == ErrAbsent {
		return false, nil
	}
	return err == nil, err
}

// HasChain reports whether a table of family ip or ip6 has a chain. What it costs does not depend on the number of
// rules.
func (c *Conn) HasChain(ipv6 bool, table, chain string) (bool, error) {
	found := false
	which := Attributes{}.Text(unix.NFTA_CHAIN_TABLE, table).Text(unix.NFTA_CHAIN_NAME, chain)
	err := c.ask(unix.NFT_MSG_GETCHAIN, 0, family(ipv6), which, func(Message) error {
		found = true
		return nil
	})
	switch {
	case absent(err):
		return false, nil
	case err == nil && !found:
		err = ErrShort // a reply without the object
	}
	if err != nil {
		return false, fmt.Errorf("ask for chain %q: %w", chain, err)
	}
	return true, nil
}

// Dump lists the objects of a kind, such as unix.NFT_MSG_GETRULE, of one family or of all (unix.AF_UNSPEC), until each
// returns an error; ErrEnough is not passed on. ErrChanged means that the dump may be incomplete.
//
// The first part of a dump is as large as what was read from the socket before. An object that does not fit would end
// the dump without a word, and rules can be large. So a dump is never a socket's first question.
func (c *Conn) Dump(get uint16, family uint8, each func(Message) error) error {
	if !c.open {
		_, err := c.Present()
		if err != nil {
			return err
		}
	}
	left := cmp.Or(c.Most, MaxObjects)
	err := c.ask(get, unix.NLM_F_DUMP, family, nil, func(m Message) error {
		if left == 0 {
			return ErrTooLarge
		}
		left--
		return each(m)
	})
	if absent(err) {
		return nil
	}
	return err
}

// Table is a table of nf_tables.
type Table struct {
	Family uint8 // nfgen_family: unix.NFPROTO_IPV4, unix.NFPROTO_INET, …
	Name   string
}

// Tables lists all tables.
func (c *Conn) Tables() (tables []Table, err error) {
	err = c.Dump(unix.NFT_MSG_GETTABLE, unix.AF_UNSPEC, func(m Message) error {
		tables = append(tables, Table{Family: m.Family(), Name: m.Attributes().String(unix.NFTA_TABLE_NAME)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	return tables, nil
}

// Rules is what a dump of rules has shown.
type Rules struct {
	Number   int  // of rules that packets of IPv4 or IPv6 pass: families ip, ip6 and inet
	Iptables bool // one of them is in a table that iptables uses
	All      bool // the dump was read to its end
}

// CountRules counts rules until there are more than limit, or MaxObjects. used says whether iptables uses a table. With
// an error, the number is that of the rules that were read before.
//
// The dump names no table. While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table
// before its successor. A dump that names a table ends after the first of that name, with no rules and no error
// (nf_tables_dump_rules).
func (c *Conn) CountRules(limit int, used func(Table) bool) (rules Rules, err error) {
	rules.All = true
	err = c.Dump(unix.NFT_MSG_GETRULE, unix.AF_UNSPEC, func(m Message) error {
		switch m.Family() {
		case unix.NFPROTO_IPV4, unix.NFPROTO_IPV6, unix.NFPROTO_INET:
		default:
			return nil
		}
		rules.Number++
		table := Table{Family: m.Family(), Name: m.Attributes().String(unix.NFTA_RULE_TABLE)}
		rules.Iptables = rules.Iptables || used(table)
		if rules.Number > limit {
			rules.All = false
			return ErrEnough
		}
		return nil
	})
	if err == nil {
		return rules, nil
	}
	rules.All = false
	if errors.Is(err, ErrTooLarge) {
		return rules, nil
	}
	return rules, fmt.Errorf("read the rules: %w", err)
}
