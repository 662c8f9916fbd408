// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// nfproto is the family's number in nf_tables.
func (f Family) nfproto() uint8 {
	if f == IPv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// absent reports that the error is the kernel's reply that there is no such thing. A system call that failed with the same
// errno, because a filter refuses it, is wrapped, and says nothing.
func absent(err error) bool { return err == unix.ENOENT || err == errNoNFTables }

// retryChanged repeats what a change spoiled while it was read.
func retryChanged(read func() error) error {
	var err error
	for range attempts {
		err = read()
		// EAGAIN and a malformed table: a legacy table was replaced between its header and its entries.
		if !errors.Is(err, errInterrupted) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, errBadTable) {
			break
		}
	}
	return err
}

// ofIptables asks whether iptables-nft takes a chain for its own: one of its base chains, or one that is no base chain.
func (s *nftSocket) ofIptables(f Family, table, name string) (bool, error) {
	m, has, err := s.object(f, table, name)
	if has != Yes {
		return false, err
	}
	c := m.chain()
	return !c.base || c.own(), nil
}

// nativeTables names the tables that iptables does not use, as nft does: "inet firewalld". Those of inet are of both families.
func (s *nftSocket) nativeTables() (native [len(families)][]string, err error) {
	prefix := map[uint8]string{unix.NFPROTO_INET: "inet ", unix.NFPROTO_IPV4: "ip ", unix.NFPROTO_IPV6: "ip6 "}
	err = retryChanged(func() error {
		native = [len(families)][]string{}
		return s.ask(unix.NFT_MSG_GETTABLE, unix.NLM_F_DUMP, unix.NFPROTO_UNSPEC, nil, func(m message) error {
			name := string(cString(m.attribute(unix.NFTA_TABLE_NAME)))
			for i, f := range families {
				if m.body[0] == unix.NFPROTO_INET || m.body[0] == f.nfproto() && !slices.Contains(tableNames[:], name) {
					native[i] = append(native[i], prefix[m.body[0]]+name)
				}
			}
			return nil
		})
	})
	if err != nil && !absent(err) {
		return native, fmt.Errorf("list the tables of nf_tables: %w", err)
	}
	return native, nil
}

// object asks for a table by its name, or for one of its chains if that is named: the cost does not depend on how much the host has.
// The names must also be in the reply.
func (s *nftSocket) object(f Family, table, chain string) (message, Answer, error) {
	get, which := uint16(unix.NFT_MSG_GETTABLE), attributes(nil).text(unix.NFTA_TABLE_NAME, table)
	if chain != "" {
		get, which = unix.NFT_MSG_GETCHAIN, attributes(nil).text(unix.NFTA_CHAIN_TABLE, table).text(unix.NFTA_CHAIN_NAME, chain)
	}
	var found message
	err := s.ask(get, 0, f.nfproto(), which, func(m message) error {
		found = m
		return m.verify(f.nfproto(), which)
	})
	switch {
	case absent(err):
		return message{}, No, nil
	case err == nil && found.body != nil:
		return found, Yes, nil
	case err == nil:
		err = errShortMessage // a reply without the object
	}
	if chain != "" {
		return message{}, Unknown, fmt.Errorf("ask nf_tables for chain %q: %w", chain, err)
	}
	return message{}, Unknown, fmt.Errorf("ask nf_tables for table %q: %w", table, err)
}

// warmUp asks something small and reads it with the whole buffer, so that a large rule does not end the dump that follows. A dump
// that was not read to its end closes the socket.
func (s *nftSocket) warmUp(f Family) error {
	if err := s.open(); err != nil || len(s.buf) == dumpBuffer {
		return err
	}
	s.buf = s.buf[:dumpBuffer]
	_, _, err := s.object(f, mangle, HintChain)
	return err
}
