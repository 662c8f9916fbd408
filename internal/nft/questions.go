// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// MaxObjects is the number of objects that a call reads of one dump, even if a namespace has more.
const MaxObjects = 32 << 10

// ErrTooLarge means that a dump has more objects than are read.
var ErrTooLarge = errors.New("nf_tables has too many objects to read")

// Present reports whether the kernel has nf_tables, which the question makes the kernel load. If not, ask nothing more:
// each question would make the kernel look for the module again. iptables-nft asks the same first (NFT_MSG_GETGEN).
func (c *Conn) Present() (bool, error) {
	err := c.ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(Message) error { return nil })
	if err == refused(unix.ENOENT) || err == refused(unix.EINVAL) {
		return false, nil // EINVAL: nfnetlink has no such subsystem, and no module adds it (nfnetlink_rcv_msg)
	}
	if err != nil {
		return false, fmt.Errorf("ask for nf_tables: %w", err)
	}
	return true, nil
}

// HasTable reports whether family ip or ip6 has a table.
func (c *Conn) HasTable(ipv6 bool, table string) (bool, error) {
	which := Attributes{}.Text(unix.NFTA_TABLE_NAME, table)
	has, err := c.has(unix.NFT_MSG_GETTABLE, ipv6, which)
	if err != nil {
		return false, fmt.Errorf("ask for table %q: %w", table, err)
	}
	return has, nil
}

// HasChain reports whether a table of family ip or ip6 has a chain. Its cost does not depend on the number of rules.
func (c *Conn) HasChain(ipv6 bool, table, chain string) (bool, error) {
	which := Attributes{}.Text(unix.NFTA_CHAIN_TABLE, table).Text(unix.NFTA_CHAIN_NAME, chain)
	has, err := c.has(unix.NFT_MSG_GETCHAIN, ipv6, which)
	if err != nil {
		return false, fmt.Errorf("ask for chain %q: %w", chain, err)
	}
	return has, nil
}

// has reports whether an object exists.
func (c *Conn) has(get uint16, ipv6 bool, which Attributes) (found bool, err error) {
	err = c.Get(get, protocolOf(ipv6), which, func(Message) error {
		found = true
		return nil
	})
	return found, err
}

// Get calls each with the object of a kind, such as unix.NFT_MSG_GETCHAIN, that the attributes name, if it exists.
func (c *Conn) Get(get uint16, family uint8, which Attributes, each func(Message) error) error {
	found := false
	err := c.ask(get, 0, family, which, func(m Message) error {
		found = true
		return each(m)
	})
	return checkFound(found, err)
}

// checkFound returns nil if the reply to a question has the object, or is that the object does not exist.
func checkFound(found bool, err error) error {
	switch {
	case err == refused(unix.ENOENT):
		return nil
	case err == nil && !found: // neither the object nor an error: it proves nothing
		return errShort
	}
	return err
}

func protocolOf(ipv6 bool) uint8 {
	if ipv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// Dump calls each with the objects of a kind, such as unix.NFT_MSG_GETRULE, of one family or of all (unix.AF_UNSPEC).
// An error of each ends the dump, and is returned. iptables.ErrChanged and ErrTooLarge mean that the dump may be
// incomplete.
//
// The kernel makes the first part of a dump as large as the last read from the socket, and no part larger than
// bufferSize. An object that does not fit ends the dump without an error, and rules can be large. So a dump is never a
// socket's first question. A rule with a hundred matches does not fit in any case: then too few rules are counted,
// which proves nothing.
func (c *Conn) Dump(get uint16, family uint8, each func(Message) error) error {
	return c.dump(get, family, nil, each)
}

// dump is Dump of what the attributes name.
func (c *Conn) dump(get uint16, family uint8, which Attributes, each func(Message) error) error {
	if !c.open {
		_, err := c.Present()
		if err != nil {
			return err
		}
	}
	left := MaxObjects
	err := c.ask(get, unix.NLM_F_DUMP, family, which, func(m Message) error {
		if left == 0 {
			return ErrTooLarge
		}
		left--
		return each(m)
	})
	if err == refused(unix.ENOENT) {
		return nil
	}
	return err
}

// DumpRules calls each with the rules of a table, as Dump does. Before Linux 4.10, the kernel ignores the table's name.
//
// While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table before its successor. A
// dump that names a table ends after the first of that name, with no rules and no error (nf_tables_dump_rules). So a
// table that looks empty is read once more, after a pause: an immediate second look often sees nothing, either.
func (c *Conn) DumpRules(family uint8, table string, each func(Message) error) (err error) {
	which := Attributes{}.Text(unix.NFTA_RULE_TABLE, table)
	isEmpty := true
	for try := 0; try < 2 && isEmpty && err == nil; try++ {
		time.Sleep(time.Duration(try) * time.Millisecond)
		err = c.dump(unix.NFT_MSG_GETRULE, family, which, func(m Message) error {
			if m.Attributes().String(unix.NFTA_RULE_TABLE) != table {
				return nil
			}
			isEmpty = false
			return each(m)
		})
	}
	return err
}

// Rules is the result of counting rules.
type Rules struct {
	Number int  // of those that were read
	All    bool // there are no more
	More   bool // there are more than the limit, or than a dump of one table may have
}

// CountRules counts the rules of families ip and ip6 in tables, until there are more than limit. With an error, the
// number is that of the rules that were read.
//
// A dump of a family skips the tables of inet. If that of a family has more than MaxObjects, a dump of each table
// replaces it, so that the rules of other tables hide none. Before Linux 4.10, a dump cannot name a table: then All is
// false.
func (c *Conn) CountRules(limit int, tables []string) (rules Rules, err error) {
	rules.All = true
	for _, ipv6 := range [...]bool{false, true} {
		r, failed := c.countFamily(protocolOf(ipv6), limit-rules.Number, tables)
		rules.Number += r.Number
		rules.All = rules.All && r.All
		rules.More = r.More
		if failed != nil {
			err = cmp.Or(err, fmt.Errorf("read the rules: %w", failed))
		}
		// A family that changes while it is read does not hide the other one.
		if rules.More || failed != nil && !errors.Is(failed, iptables.ErrChanged) {
			break
		}
	}
	return rules, err
}

// errEnough ends a dump in which there are more rules than matter.
var errEnough = errors.New("enough rules")

func (c *Conn) countFamily(family uint8, limit int, tables []string) (rules Rules, err error) {
	err = c.Dump(unix.NFT_MSG_GETRULE, family, func(m Message) error {
		if slices.Contains(tables, m.Attributes().String(unix.NFTA_RULE_TABLE)) {
			rules.Number++
		}
		if rules.Number > limit {
			return errEnough
		}
		return nil
	})
	switch err {
	case nil:
		rules.All = true
	case errEnough:
		rules.More = true
	case ErrTooLarge:
		return c.countTables(family, limit, tables)
	default:
		return rules, err
	}
	return rules, nil
}

func (c *Conn) countTables(family uint8, limit int, tables []string) (rules Rules, err error) {
	rules.All = true
	for _, table := range tables {
		before := rules.Number
		err := c.DumpRules(family, table, func(Message) error {
			rules.Number++
			if rules.Number > limit {
				return errEnough
			}
			return nil
		})
		isFull := err == ErrTooLarge && rules.Number-before == MaxObjects // and not of other tables, before 4.10
		switch {
		case err == errEnough, isFull:
			return Rules{Number: rules.Number, More: true}, nil
		case err == ErrTooLarge:
			rules.All = false
		case err != nil:
			rules.All = false
			return rules, err
		}
	}
	return rules, nil
}
