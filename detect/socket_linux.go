// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sys/unix"
)

// nftSocket asks nf_tables, over one netlink socket that is opened at the first question.
type nftSocket struct {
	fd        int // -1: not open
	seq       uint32
	buf       []byte // as large as what was asked for on this socket: see dumpBuffer
	supported Answer
	permitted Answer // No while every reply was EPERM

	// fatal is set when asking more would not help: nf_tables, or the nft_compat that is asked instead, is missing (each
	// question would make the kernel look for the module again), or it may not be asked, or does not reply.
	fatal error
}

var errNoNFTables = errors.New("this kernel has no nf_tables")

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
		s.buf = s.buf[:smallBuffer]
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

// ask puts one question and yields the messages of the reply, or last an error: the kernel's refusal as an errno, ENOENT
// for "there is no such thing" among them. The kind of the reply precedes that of the question (enum nf_tables_msg_types). A message
// is valid until the next one.
func (s *nftSocket) ask(get, flags uint16, family uint8, a attributes) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		if err := s.open(); err != nil {
			yield(message{}, err)
			return
		}
		s.seq++
		r := reply{seq: s.seq, kind: nftKind(get - 1)}
		defer func() {
			if !r.done {
				s.close() // drops the rest of the dump, which would block the next one, see warmUp
			}
		}()
		err := s.send(request(nftKind(get), flags, s.seq, family, a))
		for err == nil && !r.done {
			var datagram []byte
			if datagram, err = s.receive(); err != nil {
				break
			}
			for m, bad := range r.messages(datagram) {
				if s.noteSupport(bad); !yield(m, bad) || bad != nil {
					return
				}
			}
		}
		if err == nil {
			err = r.err()
		}
		if err != nil {
			s.noteSupport(err)
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

// noteSupport takes note of whether nf_tables is there and can be asked.
func (s *nftSocket) noteSupport(err error) {
	switch errno, replied := err.(unix.Errno); {
	case err == nil, err == errNoNFTables, replied && errno != unix.EPERM:
		s.permitted = Yes
	case replied:
		s.permitted = max(s.permitted, No)
	}
	switch {
	case err == nil, err == unix.ENOENT: // the reply, see absent
		s.supported = Yes
	case err == errNoNFTables:
		s.supported, s.fatal = No, err
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN):
		s.fatal = err
	}
	if s.supported == NotAsked {
		s.supported = Unknown
	}
}
