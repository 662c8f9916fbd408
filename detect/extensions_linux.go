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
			s.Has, err = p.nft.has(s.Family, s.Extension)
		} else {
			s.Has, err = p.legacy[slices.Index(families[:], s.Family)].has(s.Extension)
		}
		if err != nil {
			s.Err = fmt.Errorf("ask for %q: %w", s.Name, err)
		}
	}
}

func (s *nftSocket) has(f Family, x Extension) (Answer, error) { return supportFrom(s.extension(f, x)) }

func (p *legacyProbe) has(x Extension) (Answer, error) {
	err := p.extension(x)
	if err == unix.ENOPROTOOPT && p.list() != Unknown { // no x_tables, and no module that may provide it
		return No, nil
	}
	return supportFrom(err)
}

// supportFrom is the answer that an error of extension stands for. EPROTONOSUPPORT: not in this revision, but in another. An error of
// a system call that is not the answer is wrapped.
func supportFrom(err error) (Answer, error) {
	switch {
	case err == nil, err == unix.EPROTONOSUPPORT:
		return Yes, nil
	case absent(err):
		return No, nil
	default:
		return Unknown, err
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
