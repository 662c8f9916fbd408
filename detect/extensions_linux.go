// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

func askExtensions(all []Support) {
	p := newProber()
	defer p.close()
	for i := range all {
		s := &all[i]
		var err error
		if s.Backend == NFT {
			err = p.nft.extension(s.Family, s.Extension)
		} else {
			err = p.legacy[slices.Index(families[:], s.Family)].extension(s.Extension)
		}
		switch {
		// EPROTONOSUPPORT: not in this revision, but in another. ENOPROTOOPT: no x_tables. An error of a system call
		// that is not the answer is wrapped.
		case err == nil, err == unix.EPROTONOSUPPORT:
			s.Has = Yes
		case absent(err), err == unix.ENOPROTOOPT:
			s.Has = No
		default:
			s.Has, s.Err = Unknown, fmt.Errorf("ask for %q: %w", s.Name, err)
		}
	}
}

// extension asks for revision 0, see do_ipt_get_ctl in net/ipv4/netfilter/ip_tables.c.
func (p *legacyProbe) extension(x Extension) error {
	if p.withoutIPv6() {
		return unix.ENOPROTOOPT
	}
	option := p.target
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

// extension asks nft_compat, see linux/netfilter/nf_tables_compat.h:
//
//	enum { NFNL_MSG_COMPAT_GET };
//	NFTA_COMPAT_NAME  string
//	NFTA_COMPAT_REV   __be32
//	NFTA_COMPAT_TYPE  __be32: 0 is a match, 1 a target
func (s *nftSocket) extension(f Family, x Extension) error {
	var kind uint32
	if x.Target {
		kind = 1
	}
	const get = unix.NFNL_SUBSYS_NFT_COMPAT << 8
	which := attributes(nil).text(unix.NFTA_COMPAT_NAME, x.Name).be32(unix.NFTA_COMPAT_REV, 0).be32(unix.NFTA_COMPAT_TYPE, kind)
	for _, err := range s.ask(get, unix.NLM_F_ACK, f.nfproto(), which, get) {
		return err
	}
	return nil
}
