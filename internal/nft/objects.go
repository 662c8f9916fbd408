// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import "golang.org/x/sys/unix"

// Get calls each with the object of a kind, such as unix.NFT_MSG_GETCHAIN, that the attributes name, if it exists.
func (c *Conn) Get(get uint16, family uint8, which Attributes, each func(Message) error) error {
	_, err := exists(true, c.ask(get, 0, family, which, each))
	return err
}

// DumpRules calls each with the rules of a table, as Dump does. Before Linux 4.10, the kernel ignores the table's name.
//
// While iptables-nft-restore replaces a table, the kernel's list briefly has the deleted table before its successor. A
// dump that names a table ends after the first of that name, with no rules and no error (nf_tables_dump_rules). So a
// table that looks empty is read once more.
func (c *Conn) DumpRules(family uint8, table string, each func(Message) error) (err error) {
	which := Attributes{}.Text(unix.NFTA_RULE_TABLE, table)
	isEmpty := true
	for try := 0; try < 2 && isEmpty && err == nil; try++ {
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
