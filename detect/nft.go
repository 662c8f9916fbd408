// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sys/unix"
)

// nftSocket asks nf_tables, over one netlink socket that is opened at the first question.
type nftSocket struct {
	fd        int // -1: not open
	seq       uint32
	buf       []byte
	supported Answer

	// fatal is set when asking more would not help: nf_tables is missing (each question would make the kernel look
	// for the module again), or it may not be asked, or does not reply.
	fatal error

	// noCompat is set when nft_compat is missing: for the same reason it is asked once.
	noCompat error
}

var errNoNFTables = errors.New("this kernel has no nf_tables")

const (
	// attempts is how often something is read again that changed meanwhile.
	attempts = 5

	// The kernel fills as much of a dump at a time as was last asked for, 32 KiB at most (netlink_dump in
	// net/netlink/af_netlink.c). A rule that does not fit ends the dump without a word, so even the first question
	// for a chain is read with all of it.
	dumpBuffer = 32 << 10
)

// nfproto is the family's number in nf_tables.
func (f Family) nfproto() uint8 {
	if f == IPv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

func (s *nftSocket) close() {
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
}

// open makes the socket, at the first question.
func (s *nftSocket) open() error {
	if s.fatal != nil || s.fd >= 0 {
		return s.fatal
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT): // nor nfnetlink, which carries it
		s.supported, s.fatal = No, errNoNFTables
	case err != nil:
		s.supported, s.fatal = Unknown, fmt.Errorf("open a netlink socket: %w", err)
	default:
		s.fd = fd
		if s.buf == nil {
			s.buf = make([]byte, dumpBuffer)
		}
	}
	return s.fatal
}

// receive returns the next datagram from the kernel. The kernel has queued the reply before sendto returns, and more of
// a dump before recvfrom does, so there is nothing to wait for: EAGAIN is the end of it.
func (s *nftSocket) receive() ([]byte, error) {
	for {
		n, from, err := unix.Recvfrom(s.fd, s.buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch sender, ok := from.(*unix.SockaddrNetlink); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("receive: %w", err)
		case n > len(s.buf):
			return nil, errShortMessage
		case ok && sender.Pid == 0: // anything else is not from the kernel
			return s.buf[:n], nil
		}
	}
}

// exchange puts one question and yields the messages of the reply, or last an error: the kernel's refusal as an errno,
// ENOENT for "there is no such thing" among them. A message is valid until the next one.
func (s *nftSocket) exchange(kind, flags uint16, family uint8, a attributes, replyKind uint16) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		if err := s.open(); err != nil {
			yield(message{}, err)
			return
		}
		s.seq++
		r := reply{seq: s.seq, kind: replyKind}
		err := s.send(request(kind, flags, s.seq, family, a))
		for err == nil && !r.done {
			var datagram []byte
			if datagram, err = s.receive(); err != nil {
				break
			}
			for m, bad := range r.messages(datagram) {
				if !yield(m, bad) || bad != nil {
					if !r.done {
						s.close() // with the rest of the dump: no other can be asked for as long as that waits
					}
					return
				}
			}
		}
		if err == nil {
			err = r.err()
		}
		if err != nil {
			yield(message{}, err)
		}
	}
}

func (s *nftSocket) send(b []byte) error {
	if err := unix.Sendto(s.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// err is what a complete reply says.
func (r reply) err() error {
	switch r.errno {
	case 0:
		if r.interrupted {
			return errInterrupted
		}
		return nil
	case unix.EINVAL: // nfnetlink_rcv_msg: no such subsystem, and no module brought it
		return errNoNFTables
	case unix.EAFNOSUPPORT: // before 4.17, where nothing has loaded nf_tables' part for the family: it has no table
		return unix.ENOENT
	case unix.EINTR: // the dump's own way to say that the rules changed
		return errInterrupted
	default:
		return r.errno
	}
}

// ask is exchange with nf_tables itself. It takes note of whether that is there and can be asked.
func (s *nftSocket) ask(f Family, get, flags uint16, a attributes, replyKind uint16) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for m, err := range s.exchange(nftKind(get), flags, f.nfproto(), a, nftKind(replyKind)) {
			s.learn(err)
			if !yield(m, err) {
				return
			}
		}
	}
}

func (s *nftSocket) learn(err error) {
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		s.supported = Yes
	case errors.Is(err, errNoNFTables):
		s.supported, s.fatal = No, err
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN):
		s.fatal = err
	}
	if s.supported == NotAsked {
		s.supported = Unknown
	}
}

// absent reports that the error means that there is no such thing.
func absent(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, errNoNFTables) }

// again repeats what a change spoiled while it was read.
func again(read func() error) error {
	var err error
	for range attempts {
		err = read()
		// EAGAIN and a malformed table: a table of legacy was replaced between its header and its entries.
		if !errors.Is(err, errInterrupted) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, errBadTable) {
			break
		}
	}
	return err
}

// chain asks for one chain of mangle by its name: the cost does not depend on how many rules or chains there are.
func (s *nftSocket) chain(f Family, name string) (Answer, error) {
	which := attributes(nil).text(unix.NFTA_CHAIN_TABLE, mangle).text(unix.NFTA_CHAIN_NAME, name)
	for m, err := range s.ask(f, unix.NFT_MSG_GETCHAIN, 0, which, unix.NFT_MSG_NEWCHAIN) {
		if err == nil {
			err = errors.Join(m.verify(f.nfproto(), unix.NFTA_CHAIN_TABLE, mangle), m.verify(f.nfproto(), unix.NFTA_CHAIN_NAME, name))
		}
		switch {
		case err == nil:
			return Yes, nil
		case absent(err):
			return No, nil
		default:
			return Unknown, fmt.Errorf("ask nf_tables for chain %q: %w", name, err)
		}
	}
	return Unknown, errShortMessage // a reply without the chain
}

// rules streams the rules of one table, in a buffer that does not grow. It stops when the limit is reached.
//
// Not counted, here as in iptables-nft-save, is what follows a rule of more than 32 KiB: the kernel ends the dump there
// and says nothing.
func (s *nftSocket) rules(f Family, table string, limit int) (Count, error) {
	which := attributes(nil).text(unix.NFTA_RULE_TABLE, table)
	n, most := 0, 0
	err := again(func() error {
		n = 0
		for m, err := range s.ask(f, unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, which, unix.NFT_MSG_NEWRULE) {
			if err == nil {
				err = m.verify(f.nfproto(), unix.NFTA_RULE_TABLE, table)
			}
			if err != nil {
				return err
			}
			n++
			if most = max(most, n); n >= limit {
				break
			}
		}
		return nil
	})
	switch {
	case absent(err):
		return exactly(0), nil
	case err != nil:
		// What was seen before a change was there, all at once.
		return Count{most, Unbounded}, fmt.Errorf("count the rules of nf_tables in table %q: %w", table, err)
	case n >= limit:
		return Count{n, Unbounded}, nil
	default:
		return exactly(n), nil
	}
}

// nftTable is what the chains of one of the five tables say about it.
type nftTable struct {
	exists  bool
	foreign []Chain  // base chains that are not iptables' own
	users   []string // chains that are not hooked into the kernel: those that iptables -N creates
}

// tables reads the chains of the family, and says what is in each of the five tables; the names of user-defined chains only
// if they are wanted. A table without a chain is empty, so it does not exist for iptables.
func (s *nftSocket) tables(f Family, users bool) (tables [len(tableNames)]nftTable, err error) {
	err = again(func() error {
		tables = [len(tableNames)]nftTable{}
		for m, err := range s.ask(f, unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, nil, unix.NFT_MSG_NEWCHAIN) {
			if err != nil {
				return err
			}
			c, err := m.chain()
			if err != nil {
				return err
			}
			i := slices.Index(tableNames[:], string(c.table))
			if m.body[0] != f.nfproto() || i < 0 {
				continue
			}
			t := &tables[i]
			t.exists = true
			if c.base && !c.own() {
				t.foreign = append(t.foreign, Chain{tableNames[i], string(c.name)})
			} else if !c.base && users {
				t.users = append(t.users, string(c.name))
			}
		}
		return nil
	})
	if err != nil && !absent(err) {
		return tables, fmt.Errorf("list the chains of nf_tables: %w", err)
	}
	return tables, nil
}
