// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// nftSocket asks nf_tables, over one netlink socket that is opened at the first question. newNFTSocket makes it.
type nftSocket struct {
	fd        int // -1: not open
	seq       uint32
	buf       []byte // as large as what was asked for on this socket: see dumpBuffer
	supported Answer
	permitted Answer // No while every reply was EPERM

	// How many more of each may come in dumps.
	rulesLeft, chainsLeft, tablesLeft int

	// fatal is set when asking more would not help: nf_tables is missing (each question would make the kernel look for
	// the module again), or it may not be asked, or does not reply.
	fatal error
}

var (
	errNoNFTables  = errors.New("this kernel has no nf_tables")
	errInterrupted = errors.New("it kept changing while it was read")
	errEnough      = errors.New("netlink: the rest need not be read")
	errTooMuch     = errors.New("too much to read")
)

const (
	// attempts is how often something is read again that changed while it was read.
	attempts = 5

	// The kernel fills as much of a dump at a time as was asked for before, 32 KiB at most (netlink_dump in
	// net/netlink/af_netlink.c). A rule that does not fit ends the dump without a word, so something small is read
	// with all of the buffer before a dump that must be complete. Without the last 8 bytes, which the kernel does not
	// use (SKB_WITH_OVERHEAD), Go's allocator takes it for a small object, which costs three page faults less.
	dumpBuffer = 32<<10 - 8

	// smallBuffer is as much as the kernel puts into the first part of a dump where it was asked for nothing else yet
	// (NLMSG_GOODSIZE: a page, 8 KiB at most).
	smallBuffer = 8 << 10
)

func newNFTSocket(most effort) nftSocket {
	return nftSocket{fd: -1, rulesLeft: most.objects, chainsLeft: most.objects, tablesLeft: most.tables}
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
	fd, err := netlink.Open()
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT): // nor nfnetlink, which carries it
		s.supported, s.fatal = No, errNoNFTables
	case err != nil:
		s.supported, s.fatal = Unknown, err
	default:
		s.fd = fd
		if s.buf == nil {
			s.buf = make([]byte, dumpBuffer)
		}
		s.buf = s.buf[:smallBuffer]
	}
	return s.fatal
}

// exchange sends a message and reads what comes, until that is done or fails. What is left to read closes the socket:
// the rest of a dump would block the next one, see warmUp.
func (s *nftSocket) exchange(b []byte, read func(datagram []byte) (done bool, err error)) error {
	err := netlink.Send(s.fd, b)
	if err != nil {
		return err
	}
	for {
		datagram, err := netlink.Receive(s.fd, s.buf)
		if err != nil {
			s.close()
			return err
		}
		done, err := read(datagram)
		if err != nil && !done {
			s.close()
		}
		if err != nil || done {
			return err
		}
	}
}

// nftKind is the kind of a message of nf_tables.
func nftKind(kind uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | kind }

// reply is the state of the reply to one question while its datagrams come in.
type reply struct {
	seq         uint32
	kind        uint16     // of the messages that are the reply
	done        bool       // the last message has come
	errno       unix.Errno // the kernel's refusal, 0 for none
	interrupted bool       // what was dumped changed during the dump
}

// read hands out the messages of a datagram that are the reply, until that returns an error. Messages for an earlier
// question are skipped. Once what is dumped has changed, every message has NLM_F_DUMP_INTR.
func (r *reply) read(datagram []byte, each func(netlink.Message) error) error {
	for b := datagram; len(b) > 0 && !r.done; {
		m, rest, err := netlink.Next(b)
		if err != nil {
			return err
		}
		b = rest
		if m.Seq != r.seq {
			continue
		}
		r.interrupted = r.interrupted || m.Flags&unix.NLM_F_DUMP_INTR != 0
		if r.interrupted {
			m.Flags |= unix.NLM_F_DUMP_INTR
		}
		switch m.Kind {
		case unix.NLMSG_ERROR, unix.NLMSG_DONE:
			r.done = true
			r.errno = m.Errno()
		case r.kind:
			// Without NLM_F_MULTI the reply is one message, and nothing follows it.
			r.done = m.Flags&unix.NLM_F_MULTI == 0
			err = m.Whole()
			if err == nil {
				err = each(m)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// err is what a complete reply says.
func (r reply) err() error {
	switch {
	case r.errno == 0 && r.interrupted, r.errno == unix.EINTR: // the dump's own way to say that the rules changed
		return errInterrupted
	case r.errno == 0:
		return nil
	case r.errno == unix.EINVAL: // nfnetlink_rcv_msg: no such subsystem, and no module brought it
		return errNoNFTables
	case r.errno == unix.EAFNOSUPPORT:
		// Before 4.17, where nothing has loaded nf_tables' part for the family: it has no table.
		return unix.ENOENT
	default:
		return r.errno
	}
}

// dump lists all objects of a kind, as ask does, while there are some left to be read.
func (s *nftSocket) dump(
	get uint16, left *int, family uint8, which netlink.Attributes, each func(netlink.Message) error,
) error {
	return s.ask(get, unix.NLM_F_DUMP, family, which, func(m netlink.Message) error {
		if *left == 0 {
			return errTooMuch
		}
		*left--
		return each(m)
	})
}

// ask puts one question and hands out the messages of the reply, until that returns an error; errEnough is none. Else
// the error is the kernel's refusal as an errno, ENOENT for "there is no such thing" among them. The kind of the reply
// precedes that of the question (enum nf_tables_msg_types). A message is valid until the next one.
func (s *nftSocket) ask(get, flags uint16, family uint8, a netlink.Attributes, each func(netlink.Message) error) error {
	if err := s.open(); err != nil {
		return err
	}
	s.seq++
	r := reply{seq: s.seq, kind: nftKind(get - 1)}
	err := s.exchange(netlink.Request(nftKind(get), flags, s.seq, family, a), func(datagram []byte) (bool, error) {
		err := r.read(datagram, each)
		return r.done, err
	})
	if err == nil {
		err = r.err()
	}
	if err == errEnough {
		err = nil
	}
	s.noteSupport(err)
	return err
}

// noteSupport takes note of whether nf_tables is there and can be asked.
func (s *nftSocket) noteSupport(err error) {
	switch errno, replied := err.(unix.Errno); {
	case err == nil, err == unix.ENOENT: // the reply, see absent
		s.supported, s.permitted = Yes, Yes
	case err == errNoNFTables:
		s.supported, s.permitted, s.fatal = No, Yes, err
	case replied && errno == unix.EPERM:
		s.permitted = max(s.permitted, No)
	case replied:
		s.permitted = Yes
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
		s.fatal = err
	}
	s.supported = max(s.supported, Unknown)
}
