// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"time"

	"golang.org/x/sys/unix"
)

// Get calls each with the object of a kind, such as unix.NFT_MSG_GETCHAIN, that the attributes name, if it exists.
func (c *Conn) Get(get uint16, family uint8, which Attributes, each func(Message) error) error {
	found := false
	err := c.ask(get, 0, family, which, func(m Message) error {
		found = true
		return each(m)
	})
	return checkFound(found, err)
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
