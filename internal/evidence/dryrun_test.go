// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// refusal builds NLMSG_ERROR.
func refusal(seq uint32, errno unix.Errno) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+4)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.NLMSG_ERROR)
	binary.NativeEndian.PutUint32(b[8:], seq)
	binary.NativeEndian.PutUint32(b[16:], uint32(-int32(errno)))
	return b
}

// refuse builds the kernel's reply about one message of the batch. number 0 is the whole batch.
func refuse(d *dryRun, number int, errno unix.Errno) []byte {
	return refusal(d.first+uint32(number), errno)
}

// number is the place of a feature's first message in the batch.
func number(d *dryRun, f Family, feature string) int {
	return 1 + slices.IndexFunc(d.steps, func(s step) bool { return s.family == f && s.feature == feature })
}

// inWords is what is refused.
func inWords(d *dryRun) string {
	var words []string
	for _, f := range families {
		lacks, err := d.refused(f)
		if lacks != "" {
			words = append(words, f.String()+" lacks "+lacks)
		}
		if err != nil {
			words = append(words, f.String()+" "+err.Error())
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
	type answer struct {
		family  Family
		feature string
		errno   unix.Errno
	}
	for _, test := range []struct {
		doc     string
		answers []answer
		want    string
	}{
		{"all accepted", nil, ""},
		{"no nat", []answer{{IPv4, featureNAT, unix.ENOENT}, {IPv6, featureNAT, unix.ENOENT}},
			"IPv4 lacks nat chains (nft_chain_nat), IPv6 lacks nat chains (nft_chain_nat)"},
		{"no matches for IPv6", []answer{{IPv6, featureMatch, unix.ENOENT}},
			"IPv6 lacks matches and targets of iptables (nft_compat)"},
		{"no chain, so no rule in it", []answer{{IPv4, featureRule, unix.EOPNOTSUPP},
			{IPv4, featureMatch, unix.ENOENT}}, "IPv4 lacks rules with a counter and a jump"},
		{"out of memory for the chain of a match", []answer{{IPv4, featureRule, unix.ENOMEM},
			{IPv4, featureMatch, unix.ENOENT}},
			"IPv4 dry run: rules with a counter and a jump: cannot allocate memory"},
		{"no table for IPv6, so nothing in it", []answer{{IPv6, featureTable, unix.EOPNOTSUPP},
			{IPv6, featureFilter, unix.ENOENT}, {IPv6, featureMatch, unix.ENOENT}},
			"IPv6 lacks tables of this family"},
		{"a message that is not understood shows nothing that is missing",
			[]answer{{IPv4, featureRule, unix.EINVAL}},
			"IPv4 dry run: rules with a counter and a jump: invalid argument"},
	} {
		d := newDryRun(7, true)
		for _, a := range test.answers {
			if done, err := d.read(refuse(d, number(d, a.family, a.feature), a.errno)); err != nil || done {
				t.Errorf("%s: got %v, done %v", test.doc, err, done)
			}
		}
		if done, err := d.read(refuse(d, len(d.steps), 0)); err != nil || !done {
			t.Errorf("%s: got %v, done %v", test.doc, err, done)
		}
		if got := inWords(d); got != test.want {
			t.Errorf("%s: got %q, want %q", test.doc, got, test.want)
		}
	}

	d := newDryRun(7, false)
	if done, err := d.read(refuse(d, 0, unix.EPERM)); err != unix.EPERM || !done {
		t.Errorf("not permitted: got %v, done %v", err, done)
	}
	d = newDryRun(7, false)
	others := slices.Concat(refusal(6, unix.EPERM), refusal(d.first+uint32(len(d.steps))+1, unix.EPERM))
	if done, err := d.read(others); err != nil || done || inWords(d) != "" {
		t.Errorf("replies to others: got %v, done %v", err, done)
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
			if lacks, err := d.refused(family); lacks != "" && err != nil {
				t.Fatalf("got %q, %v", lacks, err)
			}
		}
	})
}

// On this kernel, iptables-nft can add rules, and a dry run says so. What the kernel does not know is refused, alone.
func TestDryRun(t *testing.T) {
	host.Netns(t)
	for _, nat := range []bool{false, true} {
		r := Query{DryRun: true, NAT: nat}.Ask()
		works := r.NFT[IPv4].Lacks == "" && r.NFT[IPv6].Works == Yes
		if r.Reason != Default || r.Conclusive || !works || r.Err() != nil {
			t.Errorf("got %+v, %v", r, r.Err())
		}
	}
	for _, test := range []struct{ from, to, want string }{
		{"comment\x00", "unknown\x00", featureMatch},
		{"counter\x00", "unknown\x00", featureRule},
		{"nat\x00", "not\x00", featureNAT},
		{"filter\x00", "folter\x00", featureFilter},
	} {
		var c netlink.Conn
		d := newDryRun(c.Reserve(1+mostSteps), true)
		changed := bytes.ReplaceAll(d.batch, []byte(test.from), []byte(test.to))
		if bytes.Equal(changed, d.batch) {
			t.Fatalf("no %q in the batch", test.from)
		}
		err := c.Exchange(changed, d.read)
		if want := "IPv4 lacks " + test.want + ", IPv6 lacks " + test.want; err != nil || inWords(d) != want {
			t.Errorf("%q: got %q, %v, want %q", test.to, inWords(d), err, want)
		}
		c.Close()
	}
}

// What a refused dry run means, for a kernel without legacy, and for one where a module may provide it.
func TestRefusedDryRun(t *testing.T) {
	for _, test := range []struct {
		doc      string
		q        Query
		nft      Answer // before the dry run, which is made where it is Yes
		legacy   Answer
		loadable bool
		want     Decision
	}{
		{"legacy works", Query{}, Yes, Yes, false, Decision{Mode: Legacy, Reason: OnlySupported}},
		{"a module may provide legacy", Query{}, Yes, Unknown, true, Decision{Mode: Legacy, Reason: OnlySupported}},
		{"no module provides legacy", Query{}, Yes, Unknown, false, Decision{Mode: NFT, Reason: NeitherWorks}},
		{"no nf_tables, and a module may provide legacy", Query{}, No, Unknown, true,
			Decision{Mode: Legacy, Reason: OnlySupported}},
		{"no nf_tables, and no module provides legacy now", Query{}, No, Unknown, false,
			Decision{Mode: Legacy, Reason: OnlySupported}},
		{"only legacy is installed", Query{Installed: Legacy}, Yes, Unknown, false,
			Decision{Mode: Legacy, Reason: OnlyInstalled}},
	} {
		p := newProber(test.q)
		p.nft.works = Yes
		var name unix.Utsname
		host.Check(t, unix.Uname(&name))
		file := "lib/modules/" + unix.ByteSliceToString(name.Release[:]) + "/kernel/net/ipv4/netfilter/ip_tables.ko="
		for _, f := range families {
			p.nftHas[f].Works, p.legacyHas[f].Works = test.nft, test.legacy
			p.legacy[f].root = t.TempDir()
			if test.loadable {
				p.legacy[f].root = fakeRoot(t, file)
			}
		}
		d := newDryRun(7, false)
		for _, f := range families {
			d.steps[number(d, f, featureRule)-1].errno = unix.ENOENT
		}
		if test.nft == Yes {
			p.judge(d, nil)
			p.askModules()
		}
		got := p.query.Decide(p.nftHas, p.legacyHas)
		because := got.Because
		got.Because = ""
		if got != test.want || test.nft == Yes && p.nftHas[IPv4].Lacks != featureRule {
			t.Errorf("%s: got %+v, %+v", test.doc, got, p.nftHas)
		}
		if named := strings.Contains(because, "kernel-modules-extra"); named != (got.Reason == NeitherWorks) {
			t.Errorf("%s: got %q", test.doc, because)
		}
	}
	p := newProber(Query{})
	p.nft.works = No
	for _, f := range families {
		p.nftHas[f].Works = No
		p.legacy[f].root = t.TempDir()
	}
	p.dryRun()
	got := p.query.Decide(p.nftHas, p.legacyHas)
	if got.Mode != Legacy || got.Reason != OnlySupported || p.legacyHas[IPv4].Lacks == "" {
		t.Errorf("no nf_tables, which a module may provide legacy for later: got %+v", got)
	}
}

// nft_compat answers on this kernel, and says nothing of one that has no such subsystem.
func TestHasCompat(t *testing.T) {
	host.Netns(t)
	var p nftProbe
	defer p.conn.Close()
	for _, f := range families {
		if !p.hasCompat(f, "comment") || !p.hasCompat(f, "nonesuch") {
			t.Errorf("%s: got no", f)
		}
	}
	const none = 0x7f << 8 // no subsystem
	err := p.conn.Ask(none, none, 0, unix.NFPROTO_IPV4, nil, func(netlink.Message) error { return nil })
	if err != unix.EINVAL {
		t.Errorf("got %v", err)
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
		{"remembered", "", Query{DryRun: true, Remembered: Decision{Mode: Legacy}}, false},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			host.Run(t, "sh", "-ec", test.make)
			p := newProber(test.q)
			defer p.close()
			first := uint32(0)
			p.between = func() { first = p.nft.conn.Reserve(0) }
			p.ask()
			if messages := p.nft.conn.Reserve(0) - first; (messages > mostSteps) != test.asked {
				t.Errorf("%d messages at the end", messages)
			}
		})
	}
}
