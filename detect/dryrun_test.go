// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// refuse builds the kernel's reply about one message of the batch. number 0 is the whole batch.
func refuse(d *dryRun, number int, errno unix.Errno) []byte {
	return control(unix.NLMSG_ERROR, 0, d.first+uint32(number), -int32(errno))
}

// number is the place of a feature's first message in the batch.
func number(d *dryRun, f Family, feature string) int {
	return 1 + slices.IndexFunc(d.steps, func(s step) bool { return s.family == f && s.feature == feature })
}

// inWords is what is not simply yes.
func inWords(d *dryRun) string {
	var words []string
	for _, f := range families {
		for _, feature := range d.features(f) {
			if feature.Has != Yes {
				words = append(words, fmt.Sprintf("%s %s: %s", f, feature.Name, feature.Has))
			}
			if (feature.Err == nil) != (feature.Has == Yes || feature.Has == NotAsked) {
				words = append(words, fmt.Sprintf("%s %s: %v", f, feature.Name, feature.Err))
			}
		}
	}
	return strings.Join(words, ", ")
}

// The kernel hooks no chain of a table that is dormant, and commits no batch without its end.
func TestDryRunIsNeverActive(t *testing.T) {
	tables := 0
	for b := newDryRun(7, true).batch; len(b) > 0; {
		m, rest, err := netlink.Next(b)
		host.Check(t, err)
		b = rest
		switch m.Kind {
		case nftKind(unix.NFT_MSG_NEWTABLE):
			tables++
			if m.Attributes().Number(unix.NFTA_TABLE_FLAGS) != unix.NFT_TABLE_F_DORMANT {
				t.Error("a table is not dormant")
			}
		case unix.NFNL_MSG_BATCH_END:
			t.Error("the batch has an end")
		}
	}
	if tables != len(families) {
		t.Errorf("%d tables", tables)
	}
}

func TestDryRunReply(t *testing.T) {
	type refusal struct {
		family  Family
		feature string
		errno   unix.Errno
	}
	for _, test := range []struct {
		doc      string
		refusals []refusal
		want     string
	}{
		{"all accepted", nil, ""},
		{"no nat", []refusal{{IPv4, FeatureNAT, unix.ENOENT}, {IPv6, FeatureNAT, unix.ENOENT}},
			"ipv4 nat-chain: no, ipv6 nat-chain: no"},
		{"no matches for IPv6", []refusal{{IPv6, FeatureMatch, unix.ENOENT}}, "ipv6 xt-match: no"},
		{"no chain, so no rule in it", []refusal{{IPv4, FeatureRule, unix.EOPNOTSUPP},
			{IPv4, FeatureMatch, unix.ENOENT}},
			"ipv4 rule: no, ipv4 xt-match: not-asked"},
		{"out of memory for the chain of a match", []refusal{{IPv4, FeatureRule, unix.ENOMEM},
			{IPv4, FeatureMatch, unix.ENOENT}},
			"ipv4 rule: unknown, ipv4 xt-match: not-asked"},
		{"no table for IPv6, so nothing in it", []refusal{{IPv6, FeatureTable, unix.EOPNOTSUPP},
			{IPv6, FeatureFilter, unix.ENOENT}, {IPv6, FeatureMatch, unix.ENOENT}},
			"ipv6 table: no, ipv6 filter-chain: not-asked, ipv6 nat-chain: not-asked, ipv6 rule: not-asked, ipv6 " +
				"xt-match: not-asked"},
		{"a message that is not understood shows nothing that is missing",
			[]refusal{{IPv4, FeatureRule, unix.EINVAL}, {IPv6, FeatureNAT, unix.EINVAL}},
			"ipv4 rule: unknown, ipv4 xt-match: not-asked, ipv6 nat-chain: unknown"},
		{"out of memory", []refusal{{IPv4, FeatureFilter, unix.ENOMEM}}, "ipv4 filter-chain: unknown"},
	} {
		d := newDryRun(7, true)
		for _, r := range test.refusals {
			if done, err := d.read(refuse(d, number(d, r.family, r.feature), r.errno)); err != nil || done {
				t.Errorf("%s: got %v, done %v", test.doc, err, done)
			}
		}
		if done, err := d.read(refuse(d, len(d.steps), 0)); err != nil || !done {
			t.Errorf("%s: got %v, done %v", test.doc, err, done)
		}
		got := inWords(d)
		if got != test.want && !strings.HasPrefix(test.doc, "no matches") {
			t.Errorf("%s: got %q, want %q", test.doc, got, test.want)
		}
	}

	d := newDryRun(7, false)
	if done, err := d.read(refuse(d, 0, unix.EPERM)); err != unix.EPERM || !done {
		t.Errorf("not permitted: got %v, done %v", err, done)
	}
	d = newDryRun(7, false)
	if done, err := d.read(slices.Concat(control(unix.NLMSG_ERROR, 0, 6, -1), rule(0, 8),
		control(unix.NLMSG_ERROR, 0, d.first+uint32(len(d.steps))+1, -1))); err != nil || done {
		t.Errorf("replies to others: got %v, done %v", err, done)
	}
	d.read(refuse(d, len(d.steps), 0))
	if inWords(d) != "ipv4 nat-chain: not-asked, ipv6 nat-chain: not-asked" {
		t.Errorf("without nat: got %q", inWords(d))
	}
	whole := bytes.Join([][]byte{refuse(d, 1, unix.ENOENT), refuse(d, len(d.steps), 0)}, nil)
	for i := range whole {
		d := newDryRun(7, false)
		if done, err := d.read(whole[:i]); err == nil && i != 0 && i != len(whole)/2 || done {
			t.Errorf("cut at %d of %d bytes: got %v, done %v", i, len(whole), err, done)
		}
	}
}

// FuzzDryRun feeds the reader anything as a reply. It must end, and know nothing but what it asked.
func FuzzDryRun(f *testing.F) {
	d := newDryRun(7, true)
	f.Add(slices.Concat(refuse(d, 3, unix.ENOENT), refuse(d, len(d.steps), 0)), uint32(7), true)
	f.Add(refuse(d, 0, unix.EPERM), uint32(7), false)
	f.Fuzz(func(t *testing.T, datagram []byte, first uint32, nat bool) {
		d := newDryRun(first, nat)
		if done, err := d.read(datagram); done && err != nil {
			if _, refused := err.(unix.Errno); !refused {
				t.Fatalf("got %v, done %v", err, done)
			}
		}
		for _, family := range families {
			for _, feature := range d.features(family) {
				if (feature.Err == nil) != (feature.Has == Yes || feature.Has == NotAsked) {
					t.Fatalf("got %+v", feature)
				}
			}
		}
	})
}

// On this kernel, iptables-nft can add rules, and a dry run says so. What the kernel does not know is refused, alone.
func TestDryRun(t *testing.T) {
	host.Netns(t)
	for _, nat := range []bool{false, true} {
		r := Query{DryRun: true, NAT: nat}.Run()
		if r.Reason != Default || r.Conclusive {
			t.Errorf("got %v, conclusive %v", r, r.Conclusive)
		}
		for _, f := range families {
			for _, feature := range r.Of(NFT, f).Features {
				if want := feature.Name != FeatureNAT || nat; (feature.Has == Yes) != want || feature.Err != nil {
					t.Errorf("nat %v, %s %+v", nat, f, feature)
				}
			}
		}
	}
	for _, test := range []struct{ from, to, want string }{
		{"comment\x00", "unknown\x00", "ipv4 xt-match: no, ipv6 xt-match: no"},
		{"counter\x00", "unknown\x00", "ipv4 rule: no, ipv6 rule: no"},
		{"nat\x00", "not\x00", "ipv4 nat-chain: no, ipv6 nat-chain: no"},
		{"filter\x00", "folter\x00", "ipv4 filter-chain: no, ipv6 filter-chain: no"},
	} {
		s := newNFTSocket(forCall)
		d := newDryRun(1, true)
		changed := bytes.ReplaceAll(d.batch, []byte(test.from), []byte(test.to))
		if bytes.Equal(changed, d.batch) {
			t.Fatalf("no %q in the batch", test.from)
		}
		d.batch = changed
		if err := s.run(d); err != nil || inWords(d) != test.want {
			t.Errorf("%q: got %q, %v, want %q", test.to, inWords(d), err, test.want)
		}
		s.close()
	}
}

// A dry run decides only where nothing else does, and where both backends could be run.
func TestDryRunOnlyWhereNeeded(t *testing.T) {
	for _, test := range []struct {
		doc, make string
		q         Query
		asked     bool
	}{
		{"nothing", "", Query{DryRun: true}, true},
		{"not permitted", "", Query{}, false},
		{"only nft installed", "", Query{DryRun: true, Installed: NFT}, false},
		{"only legacy installed", "", Query{DryRun: true, Installed: Legacy}, false},
		{"a rule", "iptables-legacy -w -A INPUT -j ACCEPT", Query{DryRun: true}, false},
		{"a hint", "iptables-nft -t mangle -N " + HintChain, Query{DryRun: true}, false},
		{"a hint, and everything is asked", "iptables-nft -t mangle -N " + HintChain,
			Query{DryRun: true, Everything: true}, true},
		{"remembered", "", Query{DryRun: true, Remembered: certain(Legacy)}, false},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "sh", "-ec", test.make)
			if r := test.q.Run(); (r.Of(NFT, IPv4).Features != nil) != test.asked {
				t.Errorf("got %+v", r.Of(NFT, IPv4).Features)
			}
		})
	}
	t.Run("without CAP_NET_ADMIN", func(t *testing.T) {
		host.Netns(t)
		dropCapability(t, unix.CAP_NET_ADMIN)
		r := Query{DryRun: true, NAT: true, Everything: true}.Run()
		if e := r.Of(NFT, IPv4); e.Features != nil || !errors.Is(e.Err, unix.EPERM) {
			t.Errorf("got %+v", e)
		}
	})
}
