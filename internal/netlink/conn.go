// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package netlink

import (
	"errors"

	"golang.org/x/sys/unix"
)

var (
	// ErrInterrupted means that the objects changed during the dump.
	ErrInterrupted = errors.New("it kept changing while it was read")

	// ErrEnough ends the reading when a function that takes messages returns it. It is not passed on to the caller.
	ErrEnough = errors.New("netlink: the rest need not be read")
)

// The kernel fills as much of a dump at a time as the largest read asked for, 32 KiB at most, and prepares two parts in
// advance (netlink_dump in net/netlink/af_netlink.c). So questions with a short reply are read with a small buffer:
// that saves a tenth of a millisecond where the first rules of a dump are enough. Without the last 8 bytes, which the
// kernel does not use (SKB_WITH_OVERHEAD), Go's allocator takes the large one for a small object, which costs three
// page faults less.
const (
	smallBuffer = 8 << 10 // what the kernel takes where nothing was asked for (NLMSG_GOODSIZE)
	largeBuffer = 32<<10 - 8
)

// Conn asks one question after the other, over a socket that it opens for the first one. The zero Conn is ready to use.
type Conn struct {
	fd   int
	open bool
	warm bool // something was read from this socket with the large buffer
	seq  uint32
	buf  []byte
}

// Open opens the socket, unless it is open.
func (c *Conn) Open() error {
	if c.open {
		return nil
	}
	fd, err := Open()
	if err != nil {
		return err
	}
	c.fd, c.open, c.warm = fd, true, false
	if c.buf == nil {
		c.buf = make([]byte, largeBuffer)
	}
	c.buf = c.buf[:smallBuffer]
	return nil
}

// Close closes the socket, if it is open. The next question opens another one.
func (c *Conn) Close() {
	if c.open {
		unix.Close(c.fd)
		c.open = false
	}
}

// Widen makes the following reads use the large buffer, and reports whether one did already. In a smaller part of a
// dump, a large object ends the dump without a word. So before a dump that must be complete, widen, and ask for
// something small.
func (c *Conn) Widen() (warm bool, err error) {
	if err := c.Open(); err != nil {
		return false, err
	}
	c.buf = c.buf[:largeBuffer]
	return c.warm, nil
}

// Reserve returns the sequence number of the first of n messages to be sent.
func (c *Conn) Reserve(n int) (first uint32) {
	first = c.seq + 1
	c.seq += uint32(n)
	return first
}

// Exchange sends messages, and reads datagrams until read is done or fails. If something is left to read, it closes the
// socket: the rest of a dump would block the next one.
func (c *Conn) Exchange(messages []byte, read func(datagram []byte) (done bool, err error)) error {
	if err := c.Open(); err != nil {
		return err
	}
	if err := Send(c.fd, messages); err != nil {
		return err
	}
	for {
		datagram, err := Receive(c.fd, c.buf)
		if err != nil {
			c.Close()
			return err
		}
		c.warm = len(c.buf) == largeBuffer
		done, err := read(datagram)
		if err != nil && !done {
			c.Close()
		}
		if err != nil || done {
			return err
		}
	}
}

// Ask asks one question, and hands out the messages of the reply, which are of one kind, until each returns an error. A
// message is valid until each returns. A bare unix.Errno is the kernel's refusal; the error of a system call is
// wrapped.
func (c *Conn) Ask(kind, replyKind, flags uint16, family uint8, a Attributes, each func(Message) error) error {
	r := reply{seq: c.Reserve(1), kind: replyKind}
	err := c.Exchange(Request(kind, flags, r.seq, family, a), func(datagram []byte) (bool, error) {
		err := r.read(datagram, each)
		return r.done, err
	})
	if err == nil {
		err = r.err()
	}
	if err == ErrEnough {
		err = nil
	}
	return err
}

// reply is the state of the reply to one question while its datagrams come in.
type reply struct {
	seq         uint32
	kind        uint16     // of the messages that are the reply
	done        bool       // the last message has come
	errno       unix.Errno // the kernel's refusal, 0 for none
	interrupted bool       // what was dumped changed during the dump
}

// read hands out the messages of a datagram that are the reply, until that returns an error. Messages for an earlier
// question are skipped.
func (r *reply) read(datagram []byte, each func(Message) error) error {
	for b := datagram; len(b) > 0 && !r.done; {
		m, rest, err := Next(b)
		if err != nil {
			return err
		}
		b = rest
		if m.Seq != r.seq {
			continue
		}
		r.interrupted = r.interrupted || m.Flags&unix.NLM_F_DUMP_INTR != 0
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

// err returns the error that a complete reply stands for.
func (r *reply) err() error {
	switch {
	case r.errno == unix.EINTR, r.errno == 0 && r.interrupted: // EINTR: the dump's own way to say so
		return ErrInterrupted
	case r.errno == 0:
		return nil
	default:
		return r.errno
	}
}
