//go:build linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// nftProbe asks nf_tables, over one netlink socket that is opened at the first question.
type nftProbe struct {
	fd  int // -1: not open
	seq uint32
	buf []byte

	// final is set when asking more would not help: nf_tables is not there (each question would make the kernel
	// look for the module again), or it may not be asked.
	final error

	// noCompat is set when nft_compat is not there: for the same reason it is asked once.
	noCompat error
}

func newNFTProbe() nftProbe { return nftProbe{fd: -1} }

func (p *nftProbe) close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
	}
}

var (
	errNoNFTables  = errors.New("this kernel has no nf_tables")
	errInterrupted = errors.New("the rules kept changing while they were read")
	errEnough      = errors.New("enough was read")
)

const (
	// attempts is how often a question is put again that a change of the tables spoiled.
	attempts = 5

	// The kernel answers before sendto returns, so a wait means that something in between holds the answer back.
	answerTimeout = 2 // seconds

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

// chain asks for one chain of mangle by its name: the cost does not depend on how many rules or chains there are.
func (p *nftProbe) chain(e *Evidence, name string, field func(*Evidence) *Answer) {
	family := e.Family.nfproto()
	found := No
	err := p.ask(e, unix.NFT_MSG_GETCHAIN, 0, unix.NFT_MSG_NEWCHAIN, func(m message) error {
		found = Yes
		if err := m.is(family, unix.NFTA_CHAIN_TABLE, mangle); err != nil {
			return err
		}
		return m.is(family, unix.NFTA_CHAIN_NAME, name)
	}, nftAttribute{kind: unix.NFTA_CHAIN_TABLE, value: mangle}, nftAttribute{kind: unix.NFTA_CHAIN_NAME, value: name})
	switch {
	case err == nil:
		*field(e) = found
	case errors.Is(err, unix.ENOENT), errors.Is(err, errNoNFTables):
		*field(e) = No
	default:
		*field(e) = Unknown
		e.blame(fmt.Errorf("ask nf_tables for chain %q: %w", name, err))
	}
}

// countRules counts the rules of the five tables, until there are enough.
func (p *nftProbe) countRules(e *Evidence, enough int) {
	rules := exactly(0)
	for _, table := range tableNames {
		if rules.Min >= enough {
			rules.Max = Unbounded
			break
		}
		rules = rules.plus(p.countTable(e, table, enough-rules.Min))
	}
	e.Rules = rules
}

// countTables counts every rule of the five tables, and lists those that exist.
func (p *nftProbe) countTables(e *Evidence) {
	e.Rules = exactly(0)
	for _, table := range tableNames {
		err := p.ask(e, unix.NFT_MSG_GETTABLE, 0, unix.NFT_MSG_NEWTABLE, func(m message) error {
			return m.is(e.Family.nfproto(), unix.NFTA_TABLE_NAME, table)
		}, nftAttribute{kind: unix.NFTA_TABLE_NAME, value: table})
		switch {
		case err == nil:
			t := Table{table, p.countTable(e, table, Unbounded), p.chains(e, table)}
			e.Tables = append(e.Tables, t)
			e.Rules = e.Rules.plus(t.Rules)
		case errors.Is(err, unix.ENOENT), errors.Is(err, errNoNFTables):
		default:
			e.Rules.Max = Unbounded
			e.blame(fmt.Errorf("ask nf_tables for table %q: %w", table, err))
		}
	}
}

// chains lists the chains of a table that are not hooked into the kernel: those that iptables -N makes.
func (p *nftProbe) chains(e *Evidence, table string) []string {
	var names []string
	err := errInterrupted
	for try := 0; try < attempts && errors.Is(err, errInterrupted); try++ {
		names = nil
		err = p.ask(e, unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, unix.NFT_MSG_NEWCHAIN, func(m message) error {
			if of, err := m.attribute(unix.NFTA_CHAIN_TABLE); err != nil || string(cString(of)) != table {
				return err // the kernel dumps those of all tables
			}
			hook, err := m.attribute(unix.NFTA_CHAIN_HOOK)
			if err != nil || hook != nil {
				return err
			}
			name, err := m.attribute(unix.NFTA_CHAIN_NAME)
			names = append(names, string(cString(name)))
			return err
		})
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		e.blame(fmt.Errorf("list the chains of nf_tables in table %q: %w", table, err))
	}
	return names
}

// countTable streams the rules of one table, in a buffer that does not grow. It stops when there are enough; the rest
// of that dump is then left in the kernel, so no dump can be asked for after it.
//
// Not counted, here as in iptables-nft-save, is what follows a rule of more than 32 KiB: the kernel ends the dump there
// and says nothing.
func (p *nftProbe) countTable(e *Evidence, table string, enough int) Count {
	rules, most, err := 0, 0, errInterrupted
	for try := 0; try < attempts && errors.Is(err, errInterrupted); try++ {
		rules = 0
		err = p.ask(e, unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, unix.NFT_MSG_NEWRULE, func(m message) error {
			if err := m.is(e.Family.nfproto(), unix.NFTA_RULE_TABLE, table); err != nil {
				return err
			}
			if rules++; rules >= enough {
				return errEnough
			}
			return nil
		}, nftAttribute{kind: unix.NFTA_RULE_TABLE, value: table})
		most = max(most, rules) // what was seen before a change was there, all at once
	}
	switch {
	case err == nil:
		return exactly(rules)
	case errors.Is(err, errEnough):
		return Count{rules, Unbounded}
	case errors.Is(err, unix.ENOENT), errors.Is(err, errNoNFTables):
		return exactly(0)
	default:
		e.blame(fmt.Errorf("count the rules of nf_tables in table %q: %w", table, err))
		return Count{most, Unbounded}
	}
}

// ask puts one question and hands every message of the answer to each. It returns the kernel's refusal as an errno,
// ENOENT for "there is no such thing" among them, and sets Supported.
func (p *nftProbe) ask(e *Evidence, request, flags, answer uint16, each func(message) error, attributes ...nftAttribute) error {
	err := p.ready()
	if err == nil {
		p.seq++
		question := nftRequest(request, flags, p.seq, e.Family.nfproto(), attributes...)
		err = p.exchange(question, &dump{seq: p.seq, kind: unix.NFNL_SUBSYS_NFTABLES<<8 | answer, each: each})
	}
	switch {
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, errEnough):
		e.Supported = Yes
	case errors.Is(err, errNoNFTables):
		e.Supported, p.final = No, err
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN): // EAGAIN: nothing came in time, and waiting adds up
		p.final = err
	}
	if e.Supported == NotAsked {
		e.Supported = Unknown
	}
	return err
}

// ready opens the socket, at the first question.
func (p *nftProbe) ready() error {
	if p.final == nil && p.fd < 0 {
		p.final = p.open()
	}
	return p.final
}

func (p *nftProbe) open() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return errNoNFTables // nor nfnetlink, which carries it
	case err != nil:
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerTimeout}); err != nil {
		unix.Close(fd)
		return fmt.Errorf("limit the wait for an answer: %w", err)
	}
	p.fd, p.buf = fd, make([]byte, dumpBuffer)
	return nil
}

// exchange sends a question and reads the answer.
func (p *nftProbe) exchange(question []byte, d *dump) error {
	if err := uninterrupted(func() error {
		return unix.Sendto(p.fd, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	for !d.done {
		var n int
		var from unix.Sockaddr
		if err := uninterrupted(func() (err error) {
			n, from, err = unix.Recvfrom(p.fd, p.buf, unix.MSG_TRUNC)
			return err
		}); err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if n > len(p.buf) {
			return errShortMessage
		}
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue // not from the kernel
		}
		if err := d.take(p.buf[:n]); err != nil {
			return err
		}
	}
	switch d.errno {
	case 0:
	case unix.EINVAL: // nfnetlink_rcv_msg: no such subsystem, and no module brought it
		return errNoNFTables
	case unix.EAFNOSUPPORT: // before 4.17, where nothing has loaded nf_tables' part for the family: it has no table
		return unix.ENOENT
	case unix.EINTR: // the dump's own way to say that the rules changed
		return errInterrupted
	default:
		return d.errno
	}
	if d.interrupted {
		return errInterrupted
	}
	return nil
}

// uninterrupted repeats a call that a signal broke off. The runtime's own signals do that to a socket with a timeout,
// whatever SA_RESTART says: signal(7). The bound is against a system where it never ends.
func uninterrupted(call func() error) error {
	err := call()
	for try := 0; try < 100 && errors.Is(err, unix.EINTR); try++ {
		err = call()
	}
	return err
}
