// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// bufferSize is the most that the kernel puts into one part of a dump (netlink_dump in net/netlink/af_netlink.c), less
// 8 bytes that the kernel does not use (SKB_WITH_OVERHEAD), and for which Go would allocate three more pages.
const bufferSize = 32<<10 - 8

// Conn asks one question after the other. It opens its socket for the first one. The zero Conn is ready to use.
type Conn struct {
	fd   int
	open bool // after a question, this means that a reply was read from the socket, too
	seq  uint32
	buf  []byte
}

// Close closes the socket, if it is open. The next question opens a new one.
func (c *Conn) Close() {
	if c.open {
		unix.Close(c.fd)
		c.open = false
	}
}

func (c *Conn) dial() error {
	if c.open {
		return nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err == unix.EPROTONOSUPPORT { // the kernel has no nfnetlink, so it has no object of nf_tables
		return refused(unix.ENOENT)
	}
	if err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	c.fd = fd
	c.open = true
	if c.buf == nil {
		c.buf = make([]byte, bufferSize)
	}
	return nil
}

// exchange sends messages, and calls take with the messages of the reply until take is done or fails. It closes the
// socket after an error, because the rest of a dump would be in the way of the next question.
func (c *Conn) exchange(messages []byte, take func(Message) (done bool, err error)) error {
	err := c.dial()
	if err != nil {
		return err
	}
	err = unix.Sendto(c.fd, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		err = fmt.Errorf("send: %w", err)
	}
	for done := false; !done && err == nil; {
		var datagram []byte
		datagram, err = receive(c.fd, c.buf)
		if err == nil {
			done, err = walk(datagram, take)
		}
	}
	if err != nil {
		c.Close()
	}
	return err
}

// receive reads the next datagram from the kernel into buf. It never waits: the kernel queues the reply before
// sendto(2) returns, and the next part of a dump before recvfrom(2) returns. EAGAIN means that there is no datagram.
func receive(fd int, buf []byte) ([]byte, error) {
	for {
		n, from, err := unix.Recvfrom(fd, buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		sender, isNetlink := from.(*unix.SockaddrNetlink)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("receive: %w", err)
		case !isNetlink || sender.Pid != 0: // not from the kernel
		case n > len(buf):
			return nil, errShort
		default:
			return buf[:n], nil
		}
	}
}

// nftKind returns the kind of a message to nf_tables: the subsystem and one of enum nf_tables_msg_types.
func nftKind(kind uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | kind }

// refused is the kernel's own answer to a question, such as ENOENT for an object that does not exist. The error of a
// system call is of another type, and proves nothing: a seccomp filter may have made it.
type refused unix.Errno

func (r refused) Error() string { return unix.Errno(r).Error() }

func (r refused) Unwrap() error { return unix.Errno(r) }

// ask asks nf_tables one question, and calls each with the messages of the reply until each returns an error. A message
// is valid only until each returns. If the kernel refuses, the error is a refused.
func (c *Conn) ask(get, flags uint16, family uint8, a Attributes, each func(Message) error) error {
	c.seq++
	r := reply{seq: c.seq, kind: nftKind(get - 1), each: each}
	err := c.exchange(request(nftKind(get), flags, r.seq, family, a), r.take)
	if err == nil {
		err = r.err()
	}
	return err
}

var errUnexpected = errors.New("the kernel's reply has a message of another kind")

type reply struct {
	seq  uint32
	kind uint16 // of its messages: one less than that of the question (enum nf_tables_msg_types)
	each func(Message) error

	errno   unix.Errno // the kernel's refusal, 0 for none
	changed bool       // the objects changed during the dump
}

// take takes a message. It skips replies to earlier questions. done means that no other message follows.
func (r *reply) take(m Message) (done bool, err error) {
	if m.Seq != r.seq {
		return false, nil
	}
	r.changed = r.changed || m.Flags&unix.NLM_F_DUMP_INTR != 0
	switch m.Kind {
	case unix.NLMSG_NOOP:
		return false, nil
	case unix.NLMSG_ERROR, unix.NLMSG_DONE:
		r.errno = m.errno()
		return true, nil
	case r.kind:
		err := m.whole()
		if err == nil {
			err = r.each(m)
		}
		return m.Flags&unix.NLM_F_MULTI == 0, err
	}
	return false, errUnexpected // an unknown reply must not pass for an empty one
}

func (r *reply) err() error {
	switch {
	case r.errno == unix.EINTR, r.errno == 0 && r.changed: // a dump may also end with EINTR if its objects changed
		return iptables.ErrChanged
	case r.errno == unix.EAFNOSUPPORT: // before 4.17, if nf_tables' module for the family is not loaded
		return refused(unix.ENOENT)
	case r.errno != 0:
		return refused(r.errno)
	}
	return nil
}
