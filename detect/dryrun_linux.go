// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// A dry run is a batch of nf_tables without its end, NFNL_MSG_BATCH_END. The kernel handles every message, loading the
// modules that it needs, replies with an error for each that it refuses, and takes everything back: nothing is ever
// active, or seen by others. "nft --check" works the same way.
//
// The table is dormant, so that its chains are not even hooked into the kernel for that moment. No match or target
// needs conntrack: that would switch it on for the namespace, and leave entries behind.
const dryRunTable = "iptables-wrapper-dry-run"

// sizeofComment is that of struct xt_comment_info { char comment[256]; }.
const sizeofComment = 256

// dryRun is what is asked of the kernel, and its reply.
type dryRun struct {
	batch []byte
	first uint32 // the sequence number of the batch's beginning
	steps []step // one for each message after that
}

type step struct {
	family  Family
	feature string
	errno   unix.Errno
}

// newDryRun builds the batch. It has all families, so that it takes the lock of nf_tables only once.
func newDryRun(first uint32, nat bool) *dryRun {
	d := &dryRun{first: first}
	d.batch = netlink.Request(unix.NFNL_MSG_BATCH_BEGIN, 0, first, unix.AF_UNSPEC, nil)
	binary.BigEndian.PutUint16(d.batch[unix.SizeofNlMsghdr+2:], unix.NFNL_SUBSYS_NFTABLES) // nfgenmsg.res_id
	last := 0
	for _, f := range families {
		add := func(feature string, kind uint16, a netlink.Attributes) {
			last = len(d.batch)
			d.steps = append(d.steps, step{family: f, feature: feature})
			seq := first + uint32(len(d.steps))
			m := netlink.Request(nftKind(kind), unix.NLM_F_CREATE|unix.NLM_F_APPEND, seq, f.nfproto(), a)
			d.batch = append(d.batch, m...)
		}
		comment := expression("match", netlink.Attributes{}.
			Text(unix.NFTA_MATCH_NAME, "comment").
			BE32(unix.NFTA_MATCH_REV, 0).
			Bytes(unix.NFTA_MATCH_INFO, make([]byte, sizeofComment)))
		add(FeatureTable, unix.NFT_MSG_NEWTABLE, netlink.Attributes{}.
			Text(unix.NFTA_TABLE_NAME, dryRunTable).BE32(unix.NFTA_TABLE_FLAGS, unix.NFT_TABLE_F_DORMANT))
		add(FeatureFilter, unix.NFT_MSG_NEWCHAIN, newBaseChain("filter", 1, 0))
		if nat {
			add(FeatureNAT, unix.NFT_MSG_NEWCHAIN, newBaseChain("nat", 4, 100))
		}
		add(FeatureRule, unix.NFT_MSG_NEWCHAIN, newChain("to"))
		add(FeatureMatch, unix.NFT_MSG_NEWRULE, newRule("to", comment))
		add(FeatureRule, unix.NFT_MSG_NEWCHAIN, newChain("from"))
		add(FeatureRule, unix.NFT_MSG_NEWRULE, newRule("from", expression("counter", nil), jumpTo("to")))
	}
	// Errors come in the order of the messages, so the reply to the last one is the end.
	flags := binary.NativeEndian.Uint16(d.batch[last+6:])
	binary.NativeEndian.PutUint16(d.batch[last+6:], flags|unix.NLM_F_ACK)
	return d
}

func newChain(name string) netlink.Attributes {
	return netlink.Attributes{}.Text(unix.NFTA_CHAIN_TABLE, dryRunTable).Text(unix.NFTA_CHAIN_NAME, name)
}

// newBaseChain is a chain of a type, which gives it its name, at a hook.
func newBaseChain(kind string, hook, priority uint32) netlink.Attributes {
	return newChain(kind).Text(unix.NFTA_CHAIN_TYPE, kind).Nest(unix.NFTA_CHAIN_HOOK, netlink.Attributes{}.
		BE32(unix.NFTA_HOOK_HOOKNUM, hook).BE32(unix.NFTA_HOOK_PRIORITY, priority))
}

func newRule(chain string, expressions ...netlink.Attributes) netlink.Attributes {
	return netlink.Attributes{}.Text(unix.NFTA_RULE_TABLE, dryRunTable).Text(unix.NFTA_RULE_CHAIN, chain).
		Nest(unix.NFTA_RULE_EXPRESSIONS, slices.Concat(expressions...))
}

func expression(name string, data netlink.Attributes) netlink.Attributes {
	return netlink.Attributes{}.Nest(unix.NFTA_LIST_ELEM, netlink.Attributes{}.
		Text(unix.NFTA_EXPR_NAME, name).Nest(unix.NFTA_EXPR_DATA, data))
}

func jumpTo(to string) netlink.Attributes {
	code := int32(unix.NFT_JUMP)
	verdict := netlink.Attributes{}.BE32(unix.NFTA_VERDICT_CODE, uint32(code)).Text(unix.NFTA_VERDICT_CHAIN, to)
	return expression("immediate", netlink.Attributes{}.BE32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT).
		Nest(unix.NFTA_IMMEDIATE_DATA, netlink.Attributes{}.Nest(unix.NFTA_DATA_VERDICT, verdict)))
}

// read takes one datagram of the reply.
func (d *dryRun) read(datagram []byte) (done bool, err error) {
	for b := datagram; len(b) > 0 && !done; {
		m, rest, err := netlink.Next(b)
		if err != nil {
			return false, err
		}
		b = rest
		n := m.Seq - d.first
		if m.Kind != unix.NLMSG_ERROR || n > uint32(len(d.steps)) {
			continue
		}
		if errno := m.Errno(); n > 0 {
			d.steps[n-1].errno, done = errno, n == uint32(len(d.steps))
		} else if errno != 0 { // the whole batch
			return true, errno
		}
	}
	return done, nil
}

// features says what the kernel can do for a family. It goes by the first error: what needs the refused thing fails
// too. All needs the table; what follows the chain of the first rule needs that.
func (d *dryRun) features(f Family) []Feature {
	var all []Feature
	for _, name := range []string{FeatureTable, FeatureFilter, FeatureNAT, FeatureRule, FeatureMatch} {
		all = append(all, Feature{Name: name})
	}
	for _, s := range d.steps {
		feature := &all[slices.IndexFunc(all, func(feature Feature) bool { return feature.Name == s.feature })]
		switch {
		case s.family != f || feature.Err != nil:
		case s.errno == 0:
			feature.Has = Yes
		default:
			feature.Has = Unknown // at this moment, such as by ENOMEM
			feature.Err = s.errno
			feature.Error = s.errno.Error()
			switch s.errno {
			case unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT: // the kernel lacks something
				feature.Has = No
			}
			if s.feature == FeatureTable || s.feature == FeatureRule {
				return all
			}
		}
	}
	return all
}

func (p *prober) dryRun(nat bool) {
	if p.nft.supported != Yes {
		return
	}
	d := newDryRun(p.nft.seq+1, nat)
	p.nft.seq += 1 + uint32(len(d.steps))
	err := p.nft.run(d)
	for i, f := range families {
		p.evidence[i].fail(err)
		if err == nil {
			p.evidence[i].Features = d.features(f)
		}
	}
}

func (s *nftSocket) run(d *dryRun) error {
	err := s.open()
	if err == nil {
		err = s.exchange(d.batch, d.read)
	}
	if err != nil {
		return fmt.Errorf("dry run of nf_tables: %w", err)
	}
	return nil
}
