// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
)

// A dry run is a batch of nf_tables without its end, NFNL_MSG_BATCH_END. The kernel handles every message, and loads
// the modules that it needs. It replies with an error for each message that it refuses, and then undoes everything:
// nothing ever becomes active, or visible to others. "nft --check" works the same way.
//
// The table is dormant, so that its chains are not hooked into the kernel even for that moment. No match or target
// needs conntrack, which would be switched on for the namespace and leave entries behind.
const dryRunTable = "iptables-wrapper-dry-run"

// sizeofComment is the size of struct xt_comment_info { char comment[256]; }.
const sizeofComment = 256

// What iptables-nft needs, in the words of messages about what is missing.
const (
	featureTable  = "tables of this family"
	featureFilter = "filter chains"
	featureNAT    = "nat chains (nft_chain_nat)"
	featureRule   = "rules with a counter and a jump"
	featureMatch  = "matches and targets of iptables (nft_compat)"
	featureLegacy = "ip_tables, neither loaded nor a module here"
)

// dryRun is the batch, and the kernel's reply to it.
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

// mostSteps are the messages of the batch after the beginning.
const mostSteps = 2 * 7

// newDryRun builds the batch. It has both families, so that it takes the lock of nf_tables only once.
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
		add(featureTable, unix.NFT_MSG_NEWTABLE, netlink.Attributes{}.
			Text(unix.NFTA_TABLE_NAME, dryRunTable).BE32(unix.NFTA_TABLE_FLAGS, unix.NFT_TABLE_F_DORMANT))
		add(featureFilter, unix.NFT_MSG_NEWCHAIN, newBaseChain("filter", 1, 0))
		if nat {
			add(featureNAT, unix.NFT_MSG_NEWCHAIN, newBaseChain("nat", 4, 100))
		}
		add(featureRule, unix.NFT_MSG_NEWCHAIN, newChain("to"))
		add(featureMatch, unix.NFT_MSG_NEWRULE, newRule("to", comment))
		add(featureRule, unix.NFT_MSG_NEWCHAIN, newChain("from"))
		add(featureRule, unix.NFT_MSG_NEWRULE, newRule("from", expression("counter", nil), jumpTo("to")))
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
		errno := m.Errno()
		switch {
		case n > 0:
			d.steps[n-1].errno = errno
			done = n == uint32(len(d.steps))
		case errno != 0: // the whole batch is refused
			return true, errno
		}
	}
	return done, nil
}

// refused returns what the kernel lacks for a family, or why that is not known. The first refusal counts: what follows
// needs what was refused.
func (d *dryRun) refused(f Family) (lacks string, err error) {
	for _, s := range d.steps {
		if s.family != f || s.errno == 0 {
			continue
		}
		switch s.errno {
		case unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT:
			return s.feature, nil
		default: // at this moment, such as by ENOMEM
			return "", fmt.Errorf("dry run: %s: %w", s.feature, s.errno)
		}
	}
	return "", nil
}

// dryRun finds out whether nf_tables can take what iptables-nft adds, and if not, whether legacy may. Where there is no
// nf_tables at all, legacy is the only backend that may still come.
func (p *prober) dryRun() {
	if p.nft.works == Yes {
		d := newDryRun(p.nft.conn.Reserve(1+mostSteps), p.query.NAT)
		p.judge(d, p.nft.conn.Exchange(d.batch, d.read))
	}
	p.askModules()
}

// judge draws the conclusions from a dry run.
func (p *prober) judge(d *dryRun, err error) {
	for _, f := range families {
		nft := &p.nftHas[f]
		if err != nil {
			nft.fail(about(NFT, f, fmt.Errorf("dry run: %w", err)))
			continue
		}
		lacks, err := d.refused(f)
		nft.fail(about(NFT, f, err))
		if lacks == featureMatch && p.nft.hasCompat(f, "comment") {
			continue // only xt_comment is missing, and legacy lacks that, too
		}
		nft.Lacks = lacks
		if lacks != "" && !p.query.Installed.Valid() {
			nft.Works = No
		}
	}
}

// askModules looks whether legacy could be loaded where it is not, and nft does not work.
func (p *prober) askModules() {
	for _, f := range families {
		nft, legacy := &p.nftHas[f], &p.legacyHas[f]
		asked := nft.Works == No && legacy.Works == Unknown && p.legacy[f].err == nil
		if !asked || p.legacy[f].loadable() {
			continue
		}
		legacy.Lacks = featureLegacy
		if p.nft.works == Yes {
			legacy.Works = No
		}
	}
}

// Questions to nft_compat, which hands matches and targets of x_tables to nf_tables.
//
//	linux/netfilter/nf_tables_compat.h:
//	NFNL_MSG_COMPAT_GET  0
//	NFTA_COMPAT_NAME     1  string
//	NFTA_COMPAT_REV      2  __be32
//	NFTA_COMPAT_TYPE     3  __be32: a match 0, a target 1
const (
	compatGet  = unix.NFNL_SUBSYS_NFT_COMPAT << 8
	compatName = 1
	compatRev  = 2
	compatType = 3
)

// hasCompat asks whether nft_compat is there, for a match, as iptables-nft does. EINVAL is nfnetlink's reply for a
// subsystem that it does not have. Any other reply is nft_compat's own (nfnl_compat_get_rcu).
func (p *nftProbe) hasCompat(f Family, match string) bool {
	which := netlink.Attributes{}.Text(compatName, match).BE32(compatRev, 0).BE32(compatType, 0)
	err := p.conn.Ask(compatGet, compatGet, 0, f.nfproto(), which, func(netlink.Message) error {
		return netlink.ErrEnough // NLM_F_MULTI is set, but nothing follows
	})
	return err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPROTONOSUPPORT)
}
