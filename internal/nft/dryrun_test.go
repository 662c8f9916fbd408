// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nft

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The steps of a dry run, by the last word of what is missing if it is refused. Step 0 is the whole batch.
const (
	stepTable = 1 + iota
	stepFilter
	stepNAT
	stepMatch
)

// refuse builds the kernel's reply to one message of the batch.
func refuse(d *dryRun, step int, errno unix.Errno) []byte {
	return control(unix.NLMSG_ERROR, 0, d.first+uint32(step), -int32(errno))
}

// The kernel hooks no chain of a table that is dormant, and commits no batch without its end.
func TestDryRunIsNeverActive(t *testing.T) {
	var kinds []uint16
	for b := newDryRun(7).batch; len(b) > 0; {
		m, rest, err := next(b)
		host.Check(t, err)
		b = rest
		kinds = append(kinds, m.Kind)
		if m.Kind == nftKind(unix.NFT_MSG_NEWTABLE) &&
			m.Attributes().Number(unix.NFTA_TABLE_FLAGS) != unix.NFT_TABLE_F_DORMANT {
			t.Error("a table is not dormant")
		}
	}
	want := []uint16{
		unix.NFNL_MSG_BATCH_BEGIN, nftKind(unix.NFT_MSG_NEWTABLE), nftKind(unix.NFT_MSG_NEWCHAIN),
		nftKind(unix.NFT_MSG_NEWCHAIN), nftKind(unix.NFT_MSG_NEWRULE),
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("got messages %#x, want %#x", kinds, want)
	}
}

func TestDryRunReply(t *testing.T) {
	type answer struct {
		step  int
		errno unix.Errno
	}
	for _, test := range []struct {
		doc     string
		answers []answer
		lacks   string
		err     error
	}{
		{doc: "all accepted"},
		{doc: "no nat", answers: []answer{{stepNAT, unix.ENOENT}}, lacks: "nat chains (nft_chain_nat)"},
		{
			doc: "no matches", answers: []answer{{stepMatch, unix.ENOENT}},
			lacks: "matches of iptables (nft_compat, xt_comment)",
		},
		{
			doc:     "no table, so nothing in it",
			answers: []answer{{stepTable, unix.EOPNOTSUPP}, {stepMatch, unix.ENOENT}},
			lacks:   "tables of family ip",
		},
		{doc: "no family", answers: []answer{{stepTable, unix.EAFNOSUPPORT}}, lacks: "tables of family ip"},
		{doc: "no filter chain", answers: []answer{{stepFilter, unix.EPROTONOSUPPORT}}, lacks: "filter chains"},
		{
			doc:     "out of memory for a chain, so no rule in it",
			answers: []answer{{stepFilter, unix.ENOMEM}, {stepMatch, unix.ENOENT}}, err: unix.ENOMEM,
		},
		{
			doc:     "a message that is not understood shows nothing that is missing",
			answers: []answer{{stepMatch, unix.EINVAL}}, err: unix.EINVAL,
		},
	} {
		d := newDryRun(7)
		for _, a := range test.answers {
			done, err := d.read(refuse(d, a.step, a.errno))
			if err != nil || done != (a.step == stepMatch) {
				t.Errorf("%s: got %v, done %v", test.doc, err, done)
			}
		}
		if len(test.answers) == 0 || test.answers[len(test.answers)-1].step != stepMatch {
			done, err := d.read(refuse(d, stepMatch, 0))
			if err != nil || !done {
				t.Errorf("%s: got %v, done %v", test.doc, err, done)
			}
		}
		lacks, err := d.lacks()
		if lacks != test.lacks || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: got %q, %v, want %q, %v", test.doc, lacks, err, test.lacks, test.err)
		}
	}
}

// Only replies to this batch are read, and they are not read where they are cut off.
func TestDryRunReplies(t *testing.T) {
	d := newDryRun(7)
	done, err := d.read(refuse(d, 0, unix.EPERM))
	if err != unix.EPERM || !done {
		t.Errorf("not permitted: got %v, done %v", err, done)
	}
	d = newDryRun(7)
	done, err = d.read(slices.Concat(refuse(d, -1, unix.EPERM), refuse(d, stepMatch+1, unix.EPERM)))
	lacks, lacksErr := d.lacks()
	if err != nil || done || lacks != "" || lacksErr != nil {
		t.Errorf("replies to others: got %v, done %v, lacks %q, %v", err, done, lacks, lacksErr)
	}
	whole := slices.Concat(refuse(d, 1, unix.ENOENT), refuse(d, stepMatch, 0))
	for i := range whole {
		done, err := newDryRun(7).read(whole[:i])
		if between := i == 0 || i == len(whole)/2; (err == nil) != between || done {
			t.Errorf("cut at %d of %d bytes: got %v, done %v", i, len(whole), err, done)
		}
	}
}

// FuzzDryRun feeds the reader anything as a reply. It must end, and know nothing but what it asked.
func FuzzDryRun(f *testing.F) {
	d := newDryRun(7)
	f.Add(slices.Concat(refuse(d, stepNAT, unix.ENOENT), refuse(d, stepMatch, 0)), uint32(7))
	f.Add(refuse(d, 0, unix.EPERM), uint32(7))
	f.Fuzz(func(t *testing.T, datagram []byte, first uint32) {
		d := newDryRun(first)
		done, err := d.read(datagram)
		_, refused := err.(unix.Errno)
		if done && err != nil && !refused {
			t.Fatalf("got %v, done %v", err, done)
		}
		lacks, err := d.lacks()
		if lacks != "" && err != nil {
			t.Fatalf("got %q, %v", lacks, err)
		}
	})
}

// On this kernel, iptables-nft can add rules. What a kernel does not know is refused, and only that.
func TestDryRun(t *testing.T) {
	host.Netns(t)
	var c Conn
	defer c.Close()
	lacks, err := c.Lacks()
	if lacks != "" || err != nil {
		t.Fatalf("got %q, %v", lacks, err)
	}
	rename := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(from+"\x00"), []byte(to+"\x00")) }
	}
	for _, test := range []struct {
		doc    string
		change func(batch []byte) []byte
		want   string
	}{
		{"match", rename("comment", "unknown"), "matches of iptables (nft_compat, xt_comment)"},
		{"expression", rename("match", "motch"), "matches of iptables (nft_compat, xt_comment)"},
		{"nat chain", rename("nat", "not"), "nat chains (nft_chain_nat)"},
		{"filter chain", rename("filter", "folter"), "filter chains"},
		{"family", func(b []byte) []byte {
			begin := unix.SizeofNlMsghdr + sizeofNfgenmsg // the second message, which is for a table
			b[begin+unix.SizeofNlMsghdr] = unix.NFPROTO_DECNET
			return b
		}, "tables of family ip"},
	} {
		d := newDryRun(c.reserve(1 + len(dryRunSteps)))
		changed := test.change(bytes.Clone(d.batch))
		if bytes.Equal(changed, d.batch) {
			t.Fatalf("%s: nothing in the batch was changed", test.doc)
		}
		host.Check(t, c.exchange(changed, d.read))
		lacks, err := d.lacks()
		if lacks != test.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", test.doc, lacks, err, test.want)
		}
	}
}

// Somebody else's table of that name can refuse what the kernel has. That shows nothing that is missing.
func TestDryRunBesideItsTable(t *testing.T) {
	host.Netns(t)
	script(t, "add table ip "+dryRunTable+"\n"+
		"add chain ip "+dryRunTable+" filter { type route hook output priority 0; }\n")
	var c Conn
	defer c.Close()
	lacks, err := c.Lacks()
	if lacks != "" || !errors.Is(err, unix.EEXIST) {
		t.Errorf("got %q, %v", lacks, err)
	}
}

// Without CAP_NET_ADMIN the whole batch is refused. That shows nothing that is missing.
func TestDryRunNotPermitted(t *testing.T) {
	host.Netns(t)
	host.DropCapability(t, unix.CAP_NET_ADMIN)
	var c Conn
	defer c.Close()
	lacks, err := c.Lacks()
	if lacks != "" || !errors.Is(err, unix.EPERM) || !strings.HasPrefix(err.Error(), "dry run: ") {
		t.Errorf("got %q, %v", lacks, err)
	}
}
