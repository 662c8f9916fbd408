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

// again repeats what a change spoiled while it was read.
func again(read func() error) error {
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
	which := attributes(nil).text(unix.NFTA_CHAIN_TABLE, mangle).text(unix.NFTA_CHAIN_NAME, name)
	has, err := s.object(unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_NEWCHAIN, f, which)
	if err != nil {
		err = fmt.Errorf("ask nf_tables for chain %q: %w", name, err)
	}
	return has, err
}

// table asks for a table by its name.
func (s *nftSocket) table(f Family, name string) (Answer, error) {
	has, err := s.object(unix.NFT_MSG_GETTABLE, unix.NFT_MSG_NEWTABLE, f, attributes(nil).text(unix.NFTA_TABLE_NAME, name))
	if err != nil {
		err = fmt.Errorf("ask nf_tables for table %q: %w", name, err)
	}
	return has, err
}

// object asks for one object of a family by the attributes that name it, which must also be in the reply.
func (s *nftSocket) object(get, reply uint16, f Family, which attributes) (Answer, error) {
	for m, err := range s.ask(nftKind(get), 0, f.nfproto(), which, nftKind(reply)) {
		if err == nil {
			err = m.verify(f.nfproto(), which)
		}
		switch {
		case err == nil:
			return Yes, nil
		case absent(err):
			return No, nil
		default:
			return Unknown, err
		}
	}
	return Unknown, errShortMessage // a reply without the object
}

// warmUp asks something small where a new socket would be asked for a dump, so that a large rule does not end it. Usually, the
// questions for kubelet's chains have come before; but a dump that was not read to its end closes the socket.
func (s *nftSocket) warmUp(f Family) error {
	if s.warm {
		return nil
	}
	_, err := s.chain(f, HintChain)
	return err
}

// rules counts the rules of one table, or of the whole family if none is named, until there are as many as the limit.
//
// The kernel prepares each part of a dump in advance, as large as the largest buffer that the socket has read into. Where one
// rule is enough, a new socket with a small buffer makes it prepare a dozen, not a hundred, which saves a third of a
// millisecond. An empty reply proves nothing, because a rule that does not fit ends the dump.
func (s *nftSocket) rules(f Family, table string, limit int) (counts, error) {
	if s.open() == nil && limit == 1 {
		few := nftSocket{fd: -1, buf: s.buf[:fewRules], warm: true}
		defer few.close()
		if all, err := few.count(f, table, limit); err == nil && all != (counts{}) {
			return all, nil
		}
	}
	return s.count(f, table, limit)
}

// count streams a dump of rules and counts those of the five tables, in a buffer that does not grow.
//
// Not counted, here as in iptables-nft-save, is what follows a rule of more than 32 KiB: the kernel ends the dump there
// and says nothing.
func (s *nftSocket) count(f Family, table string, limit int) (all counts, err error) {
	var which attributes
	if table != "" {
		which = which.text(unix.NFTA_RULE_TABLE, table)
	}
	var now, most [len(tableNames)]int
	total := 0 // with those of a table that may be none of iptables': it need not be read to its end for a bound
	err = again(func() error {
		clear(now[:])
		total = 0
		if err := s.warmUp(f); err != nil {
			return err
		}
		for m, err := range s.ask(nftKind(unix.NFT_MSG_GETRULE), unix.NLM_F_DUMP, f.nfproto(), which, nftKind(unix.NFT_MSG_NEWRULE)) {
			if err != nil {
				return err
			}
			name, err := m.attribute(unix.NFTA_RULE_TABLE)
			i := slices.Index(tableNames[:], string(cString(name)))
			switch {
			case err != nil:
				return err
			case m.body[0] != f.nfproto() || table != "" && (i < 0 || tableNames[i] != table):
				return errWrongObject
			case i < 0:
				continue
			}
			if all[i].native == "" { // even if it is gone at the next attempt
				chain, err := m.nativeChain()
				if err != nil {
					return err
				}
				all[i].native = string(chain)
			}
			now[i]++
			most[i] = max(most[i], now[i])
			if total++; total >= limit {
				break
			}
		}
		return nil
	})
	if absent(err) {
		return counts{}, nil
	}
	for i := range all {
		switch {
		case err != nil: // what was seen before a change was there, all at once
			all[i].Count = Count{most[i], Unbounded}
		case total >= limit:
			all[i].Count = Count{now[i], Unbounded}
		default:
			all[i].Count = exactly(now[i])
		}
	}
	if err != nil {
		err = fmt.Errorf("count the rules of nf_tables: %w", err)
	}
	return all, err
}
