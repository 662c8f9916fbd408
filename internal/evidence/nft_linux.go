// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// mostObjects is how many objects one dump of nf_tables may have, whatever somebody has put into the namespace.
const mostObjects = 32 << 10

// nftProbe asks nf_tables.
type nftProbe struct {
	conn  netlink.Conn
	works Answer
	most  int // objects of a dump

	// fatal is set when further questions are useless: nf_tables is missing (each question would make the kernel look
	// for the module again), the process may not ask, or the kernel does not reply.
	fatal error
}

var errNoNFTables = errors.New("this kernel has no nf_tables")

// nftKind is the kind of a message of nf_tables.
func nftKind(kind uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | kind }

// nfproto is the family's number in nf_tables.
func (f Family) nfproto() uint8 { return netlink.Family(f == IPv6) }

// ask puts one question and hands out the messages of the reply. The error is the kernel's refusal as an errno, ENOENT
// for "there is no such thing" among them. The kind of the reply precedes that of the question (enum
// nf_tables_msg_types).
func (p *nftProbe) ask(get, flags uint16, family uint8, a netlink.Attributes, each func(netlink.Message) error) error {
	if p.fatal != nil {
		return p.fatal
	}
	err := p.conn.Ask(nftKind(get), nftKind(get-1), flags, family, a, each)
	switch err {
	case unix.EINVAL: // nfnetlink_rcv_msg: no such subsystem, and no module brought it
		err = errNoNFTables
	case unix.EAFNOSUPPORT: // before 4.17, where nothing has loaded nf_tables' part for the family: it has no table
		err = unix.ENOENT
	}
	if errors.Is(err, unix.EPROTONOSUPPORT) { // socket(2): nor nfnetlink, which carries it
		err = errNoNFTables
	}
	p.note(err)
	return err
}

// note takes note of whether nf_tables is there and can be asked.
func (p *nftProbe) note(err error) {
	switch {
	case err == nil || err == unix.ENOENT:
		p.works = Yes
	case err == errNoNFTables:
		p.works, p.fatal = No, err
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN):
		p.fatal = err
	}
}

// absent reports that the error is the kernel's reply that there is no such thing. The error of a system call that
// failed with the same errno, because a filter refuses it, is wrapped, and shows nothing.
func absent(err error) bool { return err == unix.ENOENT || err == errNoNFTables }

// chain asks for a chain. What it costs does not depend on the host.
func (p *nftProbe) chain(f Family, table, chain string) (Answer, error) {
	found := false
	which := netlink.Attributes{}.Text(unix.NFTA_CHAIN_TABLE, table).Text(unix.NFTA_CHAIN_NAME, chain)
	err := p.ask(unix.NFT_MSG_GETCHAIN, 0, f.nfproto(), which, func(netlink.Message) error {
		found = true
		return nil
	})
	switch {
	case absent(err):
		return No, nil
	case err == nil && found:
		return Yes, nil
	case err == nil:
		err = netlink.ErrShort // a reply without the object
	}
	return Unknown, fmt.Errorf("ask for chain %q: %w", chain, err)
}

// once lists the objects of a kind, at most p.most of them, until each returns an error.
func (p *nftProbe) once(get uint16, family uint8, each func(netlink.Message) error) error {
	left := p.most
	return p.ask(get, unix.NLM_F_DUMP, family, nil, func(m netlink.Message) error {
		if left == 0 {
			return errTooMuch
		}
		left--
		return each(m)
	})
}

// dump is once, repeated if the objects changed under way. It calls begin before each try.
func (p *nftProbe) dump(get uint16, family uint8, begin func() error, each func(netlink.Message) error) error {
	err := retryChanged(func() error {
		if err := begin(); err != nil {
			return err
		}
		return p.once(get, family, each)
	})
	if absent(err) {
		return nil
	}
	return err
}

// warmUp asks something small, so that no large object ends the dump that follows: see netlink.Conn.Widen. Rules can be
// large, tables and chains are not.
func (p *nftProbe) warmUp() error {
	if p.fatal != nil {
		return p.fatal
	}
	warm, err := p.conn.Widen()
	if err == nil && !warm {
		_, err = p.chain(IPv4, mangle, HintChain)
	}
	return err
}

// tables lists all tables as nft names them: "ip filter", "inet firewalld".
func (p *nftProbe) tables() (names []string, err error) {
	begin := func() error {
		names = nil
		return nil
	}
	err = p.dump(unix.NFT_MSG_GETTABLE, unix.NFPROTO_UNSPEC, begin, func(m netlink.Message) error {
		prefix := ""
		switch m.Body[0] { // nfgen_family
		case unix.NFPROTO_INET:
			prefix = "inet "
		case unix.NFPROTO_IPV4:
			prefix = "ip "
		case unix.NFPROTO_IPV6:
			prefix = "ip6 "
		default:
			return nil
		}
		names = append(names, prefix+string(cString(m.Attributes().Find(unix.NFTA_TABLE_NAME))))
		return nil
	})
	if err != nil {
		err = fmt.Errorf("list the tables: %w", err)
	}
	return names, err
}

// foreignChains lists the base chains of iptables' tables that are not iptables' own. Because of one of them,
// iptables-nft calls the table incompatible, and prints nothing of it, or in some versions nothing of that chain.
func (p *nftProbe) foreignChains(f Family) (found []Chain, err error) {
	begin := func() error {
		found = nil
		return nil
	}
	err = p.dump(unix.NFT_MSG_GETCHAIN, f.nfproto(), begin, func(m netlink.Message) error {
		c := parseChain(m)
		if c.base && slices.Contains(tableNames[:], string(c.table)) && !c.own() {
			found = append(found, Chain{Table: string(c.table), Name: string(c.name)})
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("list the chains: %w", err)
	}
	return found, err
}
