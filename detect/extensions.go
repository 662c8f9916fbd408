//go:build linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Extension is a match or a target of iptables: "conntrack", "MASQUERADE".
type Extension struct {
	Name   string
	Target bool
}

// Support says whether the running kernel has an extension for a backend and family.
type Support struct {
	Backend Mode
	Family  Family
	Extension
	Has Answer
	Err error // why it could not be told
}

// Extensions asks the kernel for each extension, as iptables asks before it uses one: legacy by getsockopt(2), nft by the
// question that nft_compat answers. No rule is made, but unlike all else in this package, the kernel may load the modules
// of what it is asked for, in both backends. It needs CAP_NET_ADMIN.
func Extensions(wanted []Extension) []Support {
	k := newKernel()
	defer k.close()
	var all []Support
	for i := range k.evidence {
		e := &k.evidence[i]
		for _, x := range wanted {
			s := Support{Backend: e.Backend, Family: e.Family, Extension: x}
			var err error
			if e.Backend == NFT {
				err = k.nft.extension(e, x)
			} else {
				err = k.legacy[i-2].extension(x)
			}
			switch {
			// EPROTONOSUPPORT: not in this revision, but in another. ENOPROTOOPT: no x_tables.
			case err == nil, errors.Is(err, unix.EPROTONOSUPPORT):
				s.Has = Yes
			case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOPROTOOPT), errors.Is(err, errNoNFTables):
				s.Has = No
			default:
				s.Has, s.Err = Unknown, err
			}
			all = append(all, s)
		}
	}
	return all
}

// extension asks for revision 0, see do_ipt_get_ctl in net/ipv4/netfilter/ip_tables.c.
func (p *legacyProbe) extension(x Extension) error {
	option := soGetRevisionTarget4
	if p.family == IPv6 {
		option = soGetRevisionTarget6
		if p.withoutIPv6() {
			return unix.ENOPROTOOPT
		}
	}
	if !x.Target {
		option-- // IPT_SO_GET_REVISION_MATCH is 66, IP6T_SO_GET_REVISION_MATCH 68
	}
	revision := make([]byte, sizeofGetRevision)
	if copy(revision[:targetNameSize-1], x.Name) < len(x.Name) {
		return unix.ENOENT
	}
	_, err := p.getsockopt(option, revision)
	return err
}

// Messages and attributes of linux/netfilter/nf_tables_compat.h.
//
//	enum { NFNL_MSG_COMPAT_GET };
//	NFTA_COMPAT_NAME  string
//	NFTA_COMPAT_REV   __be32
//	NFTA_COMPAT_TYPE  __be32: 0 is a match, 1 a target
const (
	compatGet = 0
	compat    = unix.NFNL_SUBSYS_NFT_COMPAT<<8 | compatGet
)

func (p *nftProbe) extension(e *Evidence, x Extension) error {
	var target uint32
	if x.Target {
		target = 1
	}
	number := func(kind uint16, n uint32) nftAttribute {
		return nftAttribute{kind, string(binary.BigEndian.AppendUint32(nil, n)), true}
	}
	err := p.compat(e.Family, nftAttribute{kind: unix.NFTA_COMPAT_NAME, value: x.Name},
		number(unix.NFTA_COMPAT_REV, 0), number(unix.NFTA_COMPAT_TYPE, target))
	if err != nil && err != p.final && !errors.Is(err, errNoNFTables) {
		err = fmt.Errorf("ask nft_compat for %q: %w", x.Name, err)
	}
	return err
}

// compat asks nft_compat.
func (p *nftProbe) compat(family Family, attributes ...nftAttribute) error {
	if err := p.ready(); err != nil {
		return err
	}
	if p.noCompat != nil {
		return p.noCompat
	}
	p.seq++
	err := p.exchange(request(compat, unix.NLM_F_ACK, p.seq, family.nfproto(), attributes...),
		&dump{seq: p.seq, kind: compat, each: func(message) error { return nil }})
	if errors.Is(err, errNoNFTables) {
		p.noCompat = err
	}
	return err
}
