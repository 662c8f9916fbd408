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
// Nothing becomes active, or visible to others. "nft --check" works the same way. The table is dormant, so its chains
// are never hooked into the kernel, not even during the dry run. The match needs no conntrack.
const dryRunTable = "iptables-wrapper-dry-run"

const sizeofComment = 256 // struct xt_comment_info { char comment[256]; }

// step is a message of the batch. iptables-nft sends the same ones to add a rule.
type step struct {
	what       string // what the kernel lacks if it refuses the step, for people
	kind       uint16
	attributes Attributes
}

// dryRunSteps returns the messages of the batch.
func dryRunSteps() []step {
	comment := Attributes{}.
		Text(unix.NFTA_MATCH_NAME, "comment").
		BE32(unix.NFTA_MATCH_REV, 0).
		Bytes(unix.NFTA_MATCH_INFO, make([]byte, sizeofComment))
	match := Attributes{}.Text(unix.NFTA_EXPR_NAME, "match").Nest(unix.NFTA_EXPR_DATA, comment)
	return []step{
		{what: "tables of this family", kind: unix.NFT_MSG_NEWTABLE, attributes: Attributes{}.
			Text(unix.NFTA_TABLE_NAME, dryRunTable).
			BE32(unix.NFTA_TABLE_FLAGS, unix.NFT_TABLE_F_DORMANT)},
		{what: "filter chains", kind: unix.NFT_MSG_NEWCHAIN,
			attributes: newBaseChain("filter", unix.NF_INET_LOCAL_IN, 0)},
		{what: "nat chains (nft_chain_nat)", kind: unix.NFT_MSG_NEWCHAIN,
			attributes: newBaseChain("nat", unix.NF_INET_POST_ROUTING, 100)},
		{what: "matches of iptables (nft_compat, xt_comment)", kind: unix.NFT_MSG_NEWRULE, attributes: Attributes{}.
			Text(unix.NFTA_RULE_TABLE, dryRunTable).
			Text(unix.NFTA_RULE_CHAIN, "filter").
			Nest(unix.NFTA_RULE_EXPRESSIONS, Attributes{}.Nest(unix.NFTA_LIST_ELEM, match))},
	}
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

// newBatch returns the message that begins the batch, with sequence number first, and the steps, with the next ones.
func newBatch(first uint32, family uint8, steps []step) []byte {
	b := request(unix.NFNL_MSG_BATCH_BEGIN, 0, first, unix.AF_UNSPEC, nil)
	binary.BigEndian.PutUint16(b[unix.SizeofNlMsghdr+2:], unix.NFNL_SUBSYS_NFTABLES) // nfgenmsg.res_id
	for i, s := range steps {
		flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_APPEND)
		if i == 0 {
			flags |= unix.NLM_F_EXCL // adding to an existing table of that name would prove nothing
		}
		if i == len(steps)-1 {
			flags |= unix.NLM_F_ACK
		}
		b = append(b, request(nftKind(s.kind), flags, first+1+uint32(i), family, s.attributes)...)
	}
	return b
}

// refusal is the kernel's first refusal in a batch. Only the first matters: later steps need the refused one.
type refusal struct {
	first uint32     // the sequence number of the batch's first message
	last  uint32     // that of its last step
	seq   uint32     // that of the refused message
	errno unix.Errno // 0: nothing is refused
}

// take takes a message of the reply. Replies come in the order of the messages, so the reply to the last step is the
// last one, unless the kernel refuses the whole batch.
func (r *refusal) take(m Message) (done bool, err error) {
	if m.Kind != unix.NLMSG_ERROR || m.Seq-r.first > r.last-r.first {
		return false, nil
	}
	if r.errno == 0 {
		r.seq, r.errno = m.Seq, m.errno()
	}
	return m.Seq == r.last || r.errno != 0 && r.seq == r.first, nil
}

func (r *refusal) lacks(steps []step) (string, error) {
	switch {
	case r.errno == 0:
		return "", nil
	case r.seq == r.first:
		return "", refused(r.errno)
	}
	what := steps[r.seq-r.first-1].what
	switch r.errno {
	case unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT:
		return what, nil
	}
	return "", fmt.Errorf("%s: %w", what, r.errno) // refused for another reason, such as ENOMEM
}

// Lacks makes a dry run for one family. It returns what nf_tables lacks to take iptables-nft's rules, for people, "" if
// it can take them. The kernel may load modules, which package detect lists. Other writers wait for some milliseconds.
func (c *Conn) Lacks(ipv6 bool) (string, error) {
	steps := dryRunSteps()
	r := refusal{first: c.seq + 1, last: c.seq + 1 + uint32(len(steps))}
	c.seq = r.last
	lacks := ""
	err := c.exchange(newBatch(r.first, protocolOf(ipv6), steps), r.take)
	if err == nil {
		lacks, err = r.lacks(steps)
	}
	if err != nil {
		return "", fmt.Errorf("dry run: %w", err)
	}
	return lacks, nil
}
