// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// MaxObjects is the number of objects that a call reads of one dump, even if a namespace has more.
const MaxObjects = 32 << 10

// ErrTooLarge means that a dump has more objects than are read.
var ErrTooLarge = errors.New("nf_tables has too many objects to read")

// Present reports whether the kernel has nf_tables, which the question makes the kernel load. If not, ask nothing more:
// each question would make the kernel look for the module again. iptables-nft asks the same first (NFT_MSG_GETGEN).
func (c *Conn) Present() (bool, error) {
	err := c.ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(Message) error { return nil })
	if err == unix.ENOENT || err == unix.EINVAL { // nfnetlink_rcv_msg: no such subsystem, and no module adds it
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for nf_tables: %w", err)
	}
	return true, nil
}

// HasChain reports whether a table of family ip or ip6 has a chain. Its cost does not depend on the number of rules.
func (c *Conn) HasChain(ipv6 bool, table, chain string) (bool, error) {
	family := uint8(unix.NFPROTO_IPV4)
	if ipv6 {
		family = unix.NFPROTO_IPV6
	}
	found := false
	which := Attributes{}.Text(unix.NFTA_CHAIN_TABLE, table).Text(unix.NFTA_CHAIN_NAME, chain)
	err := c.ask(unix.NFT_MSG_GETCHAIN, 0, family, which, func(Message) error {
		found = true
		return nil
	})
	switch {
	case err == unix.ENOENT:
		return false, nil
	case err == nil && !found:
		err = ErrShort // a reply without the object
	}
	if err != nil {
		return false, fmt.Errorf("ask for chain %q: %w", chain, err)
	}
	return true, nil
}

// Dump calls each with the objects of a kind, such as unix.NFT_MSG_GETRULE, of one family or of all (unix.AF_UNSPEC).
// An error of each ends the dump, and is returned. ErrChanged and ErrTooLarge mean that the dump may be incomplete.
//
// The kernel makes the first part of a dump as large as the last read from the socket, and no part larger than
// bufferSize. An object that does not fit ends the dump without an error, and rules can be large. So a dump is never a
// socket's first question. A rule with a hundred matches does not fit in any case: then too few rules are counted,
// which proves nothing.
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
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// Tables lists the tables that keep chooses, each as nft prints it: "ip filter". The names of all tables that somebody
// may have made could take some 20 MiB.
func (c *Conn) Tables(keep func(table string) bool) (tables []string, err error) {
	err = c.Dump(unix.NFT_MSG_GETTABLE, unix.AF_UNSPEC, func(m Message) error {
		table := m.Table(unix.NFTA_TABLE_NAME)
		if keep(table) {
			tables = append(tables, table)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	return tables, nil
}

// Rules is the result of a dump of rules.
type Rules struct {
	Number   int  // of rules that packets of IPv4 or IPv6 pass: families ip, ip6 and inet
	Iptables bool // one of them is in a table that iptables uses
	All      bool // the dump was read to its end
}

// CountRules counts rules until there are more than limit and one of them is in a table that iptables uses, as used
// reports, or until there are MaxObjects. With an error, the number is that of the rules that were read before.
//
// The dump names no table. While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table
// before its successor. A dump that names a table ends after the first of that name, with no rules and no error
// (nf_tables_dump_rules).
func (c *Conn) CountRules(limit int, used func(table string) bool) (rules Rules, err error) {
	err = c.Dump(unix.NFT_MSG_GETRULE, unix.AF_UNSPEC, func(m Message) error {
		switch m.Family() {
		case unix.NFPROTO_IPV4, unix.NFPROTO_IPV6, unix.NFPROTO_INET:
		default:
			return nil
		}
		rules.Number++
		rules.Iptables = rules.Iptables || used(m.Table(unix.NFTA_RULE_TABLE))
		if rules.Number > limit && rules.Iptables {
			return ErrTooLarge
		}
		return nil
	})
	rules.All = err == nil
	if err == nil || errors.Is(err, ErrTooLarge) {
		return rules, nil
	}
	return rules, fmt.Errorf("read the rules: %w", err)
}
