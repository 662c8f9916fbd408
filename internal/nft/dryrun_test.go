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
func refuse(first uint32, step int, errno unix.Errno) []byte {
	return control(unix.NLMSG_ERROR, 0, first+uint32(step), -int32(errno))
}

// The kernel hooks no chain of a table that is dormant, and commits no batch without its end.
func TestDryRunIsNeverActive(t *testing.T) {
	var kinds []uint16
	for b := newBatch(7, unix.NFPROTO_IPV4, dryRunSteps()); len(b) > 0; {
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
			lacks:   "tables of this family",
		},
		{doc: "no family", answers: []answer{{stepTable, unix.EAFNOSUPPORT}}, lacks: "tables of this family"},
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
		r := refusal{first: 7, last: 7 + stepMatch}
		for _, a := range test.answers {
			done, err := walk(refuse(7, a.step, a.errno), r.take)
			if err != nil || done != (a.step == stepMatch) {
				t.Errorf("%s: got %v, done %v", test.doc, err, done)
			}
		}
		if len(test.answers) == 0 || test.answers[len(test.answers)-1].step != stepMatch {
			done, err := walk(refuse(7, stepMatch, 0), r.take)
			if err != nil || !done {
				t.Errorf("%s: got %v, done %v", test.doc, err, done)
			}
		}
		lacks, err := r.lacks(dryRunSteps())
		if lacks != test.lacks || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: got %q, %v, want %q, %v", test.doc, lacks, err, test.lacks, test.err)
		}
	}
}

// Only replies to this batch are read, and they are not read where they are cut off.
func TestDryRunReplies(t *testing.T) {
	r := refusal{first: 7, last: 7 + stepMatch}
	done, err := walk(refuse(7, 0, unix.EPERM), r.take)
	lacks, lacksErr := r.lacks(dryRunSteps())
	if err != nil || !done || lacks != "" || lacksErr != refused(unix.EPERM) {
		t.Errorf("not permitted: got %v, done %v, lacks %q, %v", err, done, lacks, lacksErr)
	}
	r = refusal{first: 7, last: 7 + stepMatch}
	done, err = walk(slices.Concat(refuse(7, -1, unix.EPERM), refuse(7, stepMatch+1, unix.EPERM)), r.take)
	lacks, lacksErr = r.lacks(dryRunSteps())
	if err != nil || done || lacks != "" || lacksErr != nil {
		t.Errorf("replies to others: got %v, done %v, lacks %q, %v", err, done, lacks, lacksErr)
	}
	whole := slices.Concat(refuse(7, 1, unix.ENOENT), refuse(7, stepMatch, 0))
	for i := range whole {
		r = refusal{first: 7, last: 7 + stepMatch}
		done, err := walk(whole[:i], r.take)
		if between := i == 0 || i == len(whole)/2; (err == nil) != between || done {
			t.Errorf("cut at %d of %d bytes: got %v, done %v", i, len(whole), err, done)
		}
	}
}

// FuzzDryRun feeds the reader anything as a reply. It must end, and know nothing but what it asked.
func FuzzDryRun(f *testing.F) {
	f.Add(slices.Concat(refuse(7, stepNAT, unix.ENOENT), refuse(7, stepMatch, 0)), uint32(7))
	f.Add(refuse(7, 0, unix.EPERM), uint32(7))
	f.Fuzz(func(t *testing.T, datagram []byte, first uint32) {
		r := refusal{first: first, last: first + stepMatch}
		done, err := walk(datagram, r.take)
		if done && err != nil {
			t.Fatalf("got %v, done %v", err, done)
		}
		lacks, err := r.lacks(dryRunSteps())
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
	lacks, err := c.Lacks(false)
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
		}, "tables of this family"},
	} {
		r := refusal{first: c.seq + 1, last: c.seq + 1 + stepMatch}
		c.seq = r.last
		whole := newBatch(r.first, unix.NFPROTO_IPV4, dryRunSteps())
		changed := test.change(bytes.Clone(whole))
		if bytes.Equal(changed, whole) {
			t.Fatalf("%s: nothing in the batch was changed", test.doc)
		}
		host.Check(t, c.exchange(changed, r.take))
		lacks, err := r.lacks(dryRunSteps())
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
	lacks, err := c.Lacks(false)
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
	lacks, err := c.Lacks(false)
	if lacks != "" || !errors.Is(err, unix.EPERM) || !strings.HasPrefix(err.Error(), "dry run: ") {
		t.Errorf("got %q, %v", lacks, err)
	}
}
