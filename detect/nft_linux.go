// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// nfproto is the family's number in nf_tables.
func (f Family) nfproto() uint8 { return netlink.Family(f == IPv6) }

// absent reports that the error is the kernel's reply that there is no such thing. The error of a system call that
// failed with the same errno, because a filter refuses it, is wrapped, and shows nothing.
func absent(err error) bool { return err == unix.ENOENT || err == errNoNFTables }

// retryChanged reads again what changed while it was read: a dump, or a legacy table that was replaced between its
// header and its entries, which the kernel then refuses with EAGAIN, or which do not fit the header.
func retryChanged(read func() error) (err error) {
	for range attempts {
		err = read()
		spoiled := errors.Is(err, errInterrupted) || errors.Is(err, unix.EAGAIN) || errors.Is(err, errBadTable)
		if !spoiled {
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
	c := parseChain(m)
	return !c.base || c.own(), nil
}

// listTables lists all tables.
func (s *nftSocket) listTables() (tables []listedTable, err error) {
	prefix := map[uint8]string{unix.NFPROTO_INET: "inet ", unix.NFPROTO_IPV4: "ip ", unix.NFPROTO_IPV6: "ip6 "}
	err = retryChanged(func() error {
		var found []listedTable
		err := s.dump(unix.NFT_MSG_GETTABLE, &s.tablesLeft, unix.NFPROTO_UNSPEC, nil, func(m netlink.Message) error {
			if family, known := prefix[m.Body[0]]; known {
				found = append(found, listedTable{
					name:  family + string(cString(m.Attributes().Find(unix.NFTA_TABLE_NAME))),
					flags: m.Attributes().Number(unix.NFTA_TABLE_FLAGS),
				})
			}
			return nil
		})
		tables = found
		return err
	})
	if err != nil && !absent(err) {
		return tables, fmt.Errorf("list the tables of nf_tables: %w", err)
	}
	return tables, nil
}

// qualified names a table of the family, as nft does: "ip filter".
func (f Family) qualified(name string) string {
	if f == IPv6 {
		return "ip6 " + name
	}
	return "ip " + name
}

// nativeTables are those of a family that iptables does not use. Those of inet are of both families.
func nativeTables(f Family, tables []listedTable) (native []string) {
	for _, t := range tables {
		ofIptables := slices.ContainsFunc(tableNames[:], func(name string) bool { return t.name == f.qualified(name) })
		ofBothFamilies := strings.HasPrefix(t.name, "inet ")
		ofThisFamily := strings.HasPrefix(t.name, f.qualified(""))
		if ofBothFamilies || ofThisFamily && !ofIptables {
			native = append(native, t.name)
		}
	}
	return native
}

// object asks for a table by its name, or for one of its chains if that is named. What it costs does not depend on the
// host.
func (s *nftSocket) object(f Family, table, chain string) (netlink.Message, Answer, error) {
	get := uint16(unix.NFT_MSG_GETTABLE)
	which := netlink.Attributes{}.Text(unix.NFTA_TABLE_NAME, table)
	if chain != "" {
		get = unix.NFT_MSG_GETCHAIN
		which = netlink.Attributes{}.Text(unix.NFTA_CHAIN_TABLE, table).Text(unix.NFTA_CHAIN_NAME, chain)
	}
	var found netlink.Message
	err := s.ask(get, 0, f.nfproto(), which, func(m netlink.Message) error {
		found = m
		return nil
	})
	switch {
	case absent(err):
		return netlink.Message{}, No, nil
	case err == nil && found.Body != nil:
		return found, Yes, nil
	case err == nil:
		err = netlink.ErrShort // a reply without the object
	}
	if chain != "" {
		return netlink.Message{}, Unknown, fmt.Errorf("ask nf_tables for chain %q: %w", chain, err)
	}
	return netlink.Message{}, Unknown, fmt.Errorf("ask nf_tables for table %q: %w", table, err)
}

// warmUp asks something small and reads it with the whole buffer, so that a large rule does not end the dump that
// follows. A dump that was not read to its end closes the socket.
func (s *nftSocket) warmUp(f Family) error {
	if err := s.open(); err != nil || len(s.buf) == dumpBuffer {
		return err
	}
	s.buf = s.buf[:dumpBuffer]
	_, _, err := s.object(f, mangle, HintChain)
	return err
}

// nftTable is what the chains of one of the five tables say about it.
type nftTable struct {
	exists  bool
	foreign []Chain  // base chains that are not iptables' own
	users   []string // chains that are not hooked into the kernel: those that iptables -N creates
	likely  int      // number of rules, by how often the chains are used
}

// tables reads the chains of the family, and says what is in each of the five tables. A table without a chain is empty,
// so it does not exist for iptables.
func (s *nftSocket) tables(f Family) (tables [len(tableNames)]nftTable, err error) {
	err = retryChanged(func() error {
		if err := s.warmUp(f); err != nil {
			return err
		}
		var found [len(tableNames)]nftTable
		err := s.dump(unix.NFT_MSG_GETCHAIN, &s.chainsLeft, f.nfproto(), nil, func(m netlink.Message) error {
			c := parseChain(m)
			i := slices.Index(tableNames[:], string(c.table))
			if i < 0 {
				return nil
			}
			t := &found[i]
			t.exists = true
			t.likely += c.likelyRules()
			switch {
			case !c.base:
				t.users = append(t.users, string(c.name))
			case !c.own():
				t.foreign = append(t.foreign, Chain{tableNames[i], string(c.name)})
			}
			return nil
		})
		tables = found
		return err
	})
	if err != nil && !absent(err) {
		return tables, fmt.Errorf("list the chains of nf_tables: %w", err)
	}
	return tables, nil
}

type nftChain struct {
	table, name, kind []byte // parts of the message
	base              bool   // it is hooked into the kernel
	hook              uint32
	priority          int32
	uses              uint32 // by its rules, and by those that jump to it
}

// likelyRules is an estimate, because a transaction that is not committed counts, too. A chain that is not hooked into
// the kernel is the target of at least one jump, if anybody uses it.
func (c nftChain) likelyRules() int {
	if c.base || c.uses == 0 {
		return int(c.uses)
	}
	return int(c.uses) - 1
}

// parseChain decodes NFT_MSG_NEWCHAIN. Only base chains have a type and a hook.
func parseChain(m netlink.Message) nftChain {
	chain := m.Attributes()
	hook := chain.Find(unix.NFTA_CHAIN_HOOK)
	return nftChain{
		table:    cString(chain.Find(unix.NFTA_CHAIN_TABLE)),
		name:     cString(chain.Find(unix.NFTA_CHAIN_NAME)),
		kind:     cString(chain.Find(unix.NFTA_CHAIN_TYPE)),
		base:     hook != nil,
		uses:     chain.Number(unix.NFTA_CHAIN_USE),
		hook:     hook.Number(unix.NFTA_HOOK_HOOKNUM),
		priority: int32(hook.Number(unix.NFTA_HOOK_PRIORITY)),
	}
}

// The base chains of iptables are named after their hooks, which are numbered in this order (enum nf_inet_hooks).
var hookNames = [...]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// builtInChains are the base chains that iptables has in a table.
func builtInChains(table string) string {
	switch table {
	case "raw":
		return "PREROUTING OUTPUT"
	case mangle:
		return "PREROUTING INPUT FORWARD OUTPUT POSTROUTING"
	case "nat":
		return "PREROUTING INPUT OUTPUT POSTROUTING"
	default: // filter, security
		return "INPUT FORWARD OUTPUT"
	}
}

// own reports whether iptables-nft takes a base chain of one of its five tables for its own. If one is not, it calls
// the table incompatible, and prints nothing of it, or in some versions nothing of that chain.
func (c nftChain) own() bool {
	name := string(c.name)
	table := string(c.table)
	kind, priority := "filter", int32(0) // filter
	switch table {
	case "raw":
		priority = -300
	case mangle:
		priority = -150
		if name == "OUTPUT" {
			kind = "route"
		}
	case "security":
		priority = 150 // iptables-nft has always used this; NF_IP_PRI_SECURITY is 50
	case "nat":
		kind, priority = "nat", -100
		if name == "INPUT" || name == "POSTROUTING" {
			priority = 100
		}
	}
	return c.hook < uint32(len(hookNames)) && name == hookNames[c.hook] &&
		strings.Contains(builtInChains(table), name) && string(c.kind) == kind && c.priority == priority
}

// parseExpressions says what the expressions of a rule tell about who made it.
//
//	linux/netfilter/nf_tables.h:
//	NFTA_RULE_EXPRESSIONS   nested: a row of NFTA_LIST_ELEM, each nested:
//		NFTA_EXPR_NAME  string
//		NFTA_EXPR_DATA  nested, as the name has it
//
// iptables-nft prints nothing of a table in which one rule has an expression that it does not use itself: nftOnly. A
// match or target of x_tables, xt, is something that nft cannot make. A rule that was made with nft, and has only such
// expressions as iptables-nft uses too, cannot be told apart: it is printed as iptables would have made it, or nearly
// so, and counts.
func parseExpressions(m netlink.Message) (xt, nftOnly bool) {
	for list := m.Attributes().Find(unix.NFTA_RULE_EXPRESSIONS); len(list) > 0; {
		var element netlink.Attributes
		element, list = list.Next()
		name := string(cString(element.Find(unix.NFTA_EXPR_NAME)))
		xt = xt || name == "match" || name == "target"
		nftOnly = nftOnly || !usedByIptables(name, element.Find(unix.NFTA_EXPR_DATA))
	}
	return xt, nftOnly
}

// usedByIptables reports whether iptables-nft makes rules with such an expression. Matches and targets that it does not
// translate are "match" and "target". A limit is one of packets per time, and not of what exceeds it; a log is that of
// NFLOG, which has a group:
//
//	NFTA_LIMIT_TYPE   __be32: NFT_LIMIT_PKTS 0, NFT_LIMIT_PKT_BYTES 1
//	NFTA_LIMIT_FLAGS  __be32: NFT_LIMIT_F_INV 1
//	NFTA_LOG_GROUP    __be16
//
// Kernels before 4.3 send neither a limit's type nor its flags, because they have no other.
func usedByIptables(name string, data netlink.Attributes) bool {
	switch name {
	case "match", "target", "payload", "meta", "cmp", "bitwise", "counter", "immediate", "lookup", "range":
		return true
	case "limit":
		return data.Number(unix.NFTA_LIMIT_TYPE) == unix.NFT_LIMIT_PKTS && data.Number(unix.NFTA_LIMIT_FLAGS) == 0
	case "log":
		return data.Find(unix.NFTA_LOG_GROUP) != nil
	default:
		return false
	}
}
