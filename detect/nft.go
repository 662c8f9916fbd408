// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

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

// chain asks for one chain of mangle by its name: the cost does not depend on how many rules or chains there are.
func (s *nftSocket) chain(f Family, name string) (Answer, error) {
	_, has, err := s.object(unix.NFT_MSG_GETCHAIN, f, ofChain(mangle, name))
	if err != nil {
		err = fmt.Errorf("ask nf_tables for chain %q: %w", name, err)
	}
	return has, err
}

// table asks for a table by its name.
func (s *nftSocket) table(f Family, name string) (Answer, error) {
	_, has, err := s.object(unix.NFT_MSG_GETTABLE, f, attributes(nil).text(unix.NFTA_TABLE_NAME, name))
	if err != nil {
		err = fmt.Errorf("ask nf_tables for table %q: %w", name, err)
	}
	return has, err
}

// ofIptables asks whether iptables-nft takes a chain for its own: one of its base chains, or one that is no base chain.
func (s *nftSocket) ofIptables(f Family, table, name string) (bool, error) {
	var c nftChain
	m, has, err := s.object(unix.NFT_MSG_GETCHAIN, f, ofChain(table, name))
	if has == Yes {
		c, err = m.chain()
	}
	if err != nil {
		return false, fmt.Errorf("ask nf_tables for chain %q: %w", name, err)
	}
	return has == Yes && (!c.base || c.own()), nil
}

// nativeTables names the tables that iptables does not use, as nft does: "inet firewalld".
func (s *nftSocket) nativeTables() (ip, ip6 []string, err error) {
	err = retryChanged(func() error {
		ip, ip6 = nil, nil
		for m, err := range s.ask(nftKind(unix.NFT_MSG_GETTABLE), unix.NLM_F_DUMP, unix.NFPROTO_UNSPEC, nil, nftKind(unix.NFT_MSG_NEWTABLE)) {
			if err != nil {
				return err
			}
			value, err := m.attribute(unix.NFTA_TABLE_NAME)
			if err != nil {
				return err
			}
			name := string(cString(value))
			native := !slices.Contains(tableNames[:], name)
			switch family := m.body[0]; {
			case family == unix.NFPROTO_INET:
				ip, ip6 = append(ip, "inet "+name), append(ip6, "inet "+name)
			case family == unix.NFPROTO_IPV4 && native:
				ip = append(ip, "ip "+name)
			case family == unix.NFPROTO_IPV6 && native:
				ip6 = append(ip6, "ip6 "+name)
			}
		}
		return nil
	})
	if err != nil && !absent(err) {
		err = fmt.Errorf("list the tables of nf_tables: %w", err)
		return ip, ip6, err
	}
	return ip, ip6, nil
}

func ofChain(table, name string) attributes {
	return attributes(nil).text(unix.NFTA_CHAIN_TABLE, table).text(unix.NFTA_CHAIN_NAME, name)
}

// object asks for one object of a family by the attributes that name it, which must also be in the reply. The kind of the reply
// precedes that of the question (enum nf_tables_msg_types).
func (s *nftSocket) object(get uint16, f Family, which attributes) (message, Answer, error) {
	for m, err := range s.ask(nftKind(get), 0, f.nfproto(), which, nftKind(get-1)) {
		if err == nil {
			err = m.verify(f.nfproto(), which)
		}
		switch {
		case err == nil:
			return m, Yes, nil
		case absent(err):
			return message{}, No, nil
		default:
			return message{}, Unknown, err
		}
	}
	return message{}, Unknown, errShortMessage // a reply without the object
}

// warmUp asks something small and reads it with the whole buffer, so that a large rule does not end the dump that follows. A dump
// that was not read to its end closes the socket.
func (s *nftSocket) warmUp(f Family) error {
	if s.whole = true; s.warm {
		return nil
	}
	_, err := s.chain(f, HintChain)
	return err
}
