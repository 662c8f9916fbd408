// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package nft

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// A dry run is a batch of nf_tables without its end, NFNL_MSG_BATCH_END. The kernel handles every message, and loads
// the modules that it needs. It replies with an error for each message that it refuses, and then undoes everything.
// Nothing becomes active, or visible to others. "nft --check" works the same way.
//
// The table is dormant, so its chains are never hooked into the kernel, not even during the dry run. The match needs no
// conntrack.
const dryRunTable = "iptables-wrapper-dry-run"

// sizeofComment is the size of struct xt_comment_info { char comment[256]; }.
const sizeofComment = 256

// dryRun is the batch, and the kernel's reply to it.
type dryRun struct {
	batch []byte
	first uint32       // the sequence number of the batch's first message; the steps have the next ones
	errno []unix.Errno // the reply to each step
}

// dryRunStep is a message of the batch. iptables-nft sends the same ones to add a rule.
type dryRunStep struct {
	what       string // what the kernel lacks if it refuses the step, for people
	kind       uint16
	attributes func() Attributes
}

// dryRunSteps are always for IPv4, also if the call is ip6tables.
var dryRunSteps = [...]dryRunStep{
	{what: "tables of family ip", kind: unix.NFT_MSG_NEWTABLE, attributes: newTable},
	{what: "filter chains", kind: unix.NFT_MSG_NEWCHAIN, attributes: func() Attributes {
		return newBaseChain("filter", unix.NF_INET_LOCAL_IN, 0)
	}},
	{what: "nat chains (nft_chain_nat)", kind: unix.NFT_MSG_NEWCHAIN, attributes: func() Attributes {
		return newBaseChain("nat", unix.NF_INET_POST_ROUTING, 100)
	}},
	{what: "matches of iptables (nft_compat, xt_comment)", kind: unix.NFT_MSG_NEWRULE, attributes: newRule},
}

// newTable returns the attributes of a dormant table.
func newTable() Attributes {
	return Attributes{}.Text(unix.NFTA_TABLE_NAME, dryRunTable).BE32(unix.NFTA_TABLE_FLAGS, unix.NFT_TABLE_F_DORMANT)
}

// newBaseChain returns the attributes of a chain at a hook. Its name is that of its type.
func newBaseChain(kind string, hook, priority uint32) Attributes {
	return Attributes{}.
		Text(unix.NFTA_CHAIN_TABLE, dryRunTable).
		Text(unix.NFTA_CHAIN_NAME, kind).
		Text(unix.NFTA_CHAIN_TYPE, kind).
		Nest(unix.NFTA_CHAIN_HOOK, Attributes{}.
			BE32(unix.NFTA_HOOK_HOOKNUM, hook).
			BE32(unix.NFTA_HOOK_PRIORITY, priority))
}

// newRule returns the attributes of a rule in chain "filter" with the match comment.
func newRule() Attributes {
	comment := Attributes{}.
		Text(unix.NFTA_MATCH_NAME, "comment").
		BE32(unix.NFTA_MATCH_REV, 0).
		Bytes(unix.NFTA_MATCH_INFO, make([]byte, sizeofComment))
	expression := Attributes{}.Text(unix.NFTA_EXPR_NAME, "match").Nest(unix.NFTA_EXPR_DATA, comment)
	return Attributes{}.
		Text(unix.NFTA_RULE_TABLE, dryRunTable).
		Text(unix.NFTA_RULE_CHAIN, "filter").
		Nest(unix.NFTA_RULE_EXPRESSIONS, Attributes{}.Nest(unix.NFTA_LIST_ELEM, expression))
}

func newDryRun(first uint32) *dryRun {
	d := &dryRun{first: first, errno: make([]unix.Errno, len(dryRunSteps))}
	d.batch = request(unix.NFNL_MSG_BATCH_BEGIN, 0, first, unix.AF_UNSPEC, nil)
	binary.BigEndian.PutUint16(d.batch[unix.SizeofNlMsghdr+2:], unix.NFNL_SUBSYS_NFTABLES) // nfgenmsg.res_id
	for i, step := range dryRunSteps {
		flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_APPEND)
		if i == 0 {
			flags |= unix.NLM_F_EXCL // what a table of that name can take shows nothing of the kernel
		}
		if i == len(dryRunSteps)-1 {
			flags |= unix.NLM_F_ACK // replies come in the order of the messages, so the reply to this one is the last
		}
		m := request(nftKind(step.kind), flags, first+1+uint32(i), unix.NFPROTO_IPV4, step.attributes())
		d.batch = append(d.batch, m...)
	}
	return d
}

// read takes one datagram of the reply.
func (d *dryRun) read(datagram []byte) (done bool, err error) {
	for b := datagram; len(b) > 0 && !done; {
		m, rest, err := next(b)
		if err != nil {
			return false, err
		}
		b = rest
		n := m.Seq - d.first
		if m.Kind != unix.NLMSG_ERROR || n > uint32(len(d.errno)) {
			continue
		}
		errno := m.errno()
		switch {
		case n > 0:
			d.errno[n-1] = errno
			done = n == uint32(len(d.errno))
		case errno != 0: // the whole batch is refused
			return true, errno
		}
	}
	return done, nil
}

// lacks returns what the kernel lacks, "" if nothing. Only the first refusal matters: later steps need the refused one.
func (d *dryRun) lacks() (string, error) {
	for i, errno := range d.errno {
		switch errno {
		case 0:
		case unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT:
			return dryRunSteps[i].what, nil
		default: // for another reason, such as ENOMEM
			return "", fmt.Errorf("%s: %w", dryRunSteps[i].what, errno)
		}
	}
	return "", nil
}

// Lacks makes a dry run. It returns what nf_tables lacks to take iptables-nft's rules, for people, "" if it can take
// them. The kernel may load the modules nft_chain_nat, nf_nat, nf_conntrack, nft_compat and xt_comment, and other
// writers wait for some milliseconds.
func (c *Conn) Lacks() (string, error) {
	d := newDryRun(c.reserve(1 + len(dryRunSteps)))
	err := c.exchange(d.batch, d.read)
	lacks := ""
	if err == nil {
		lacks, err = d.lacks()
	}
	if err != nil {
		return "", fmt.Errorf("dry run: %w", err)
	}
	return lacks, nil
}
