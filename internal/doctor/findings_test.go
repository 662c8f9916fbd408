// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What no situation makes, because it takes another iptables or another kernel.

// permitted is an observation on a host that uses nft, by a process that may do all.
func permitted() *observation {
	o := &observation{process: process{netAdmin: true, netRaw: true}}
	o.Here = here.Here{Backend: detect.NFT}
	o.Host.Backend = detect.NFT
	o.Host.Evidence.NFT.Kernel = detect.Yes
	return o
}

// says fails the test if a finding does not contain a text; "" is for no finding.
func says(t *testing.T, doc string, found *Finding, want string) {
	t.Helper()
	if found == nil != (want == "") || found != nil && !strings.Contains(found.Text, want) {
		t.Errorf("%s: got %+v, want %q", doc, found, want)
	}
}

func TestUnexplained(t *testing.T) {
	failed := errors.New("exit status 7")
	for _, test := range []struct {
		doc  string
		out  run.Output
		want string
	}{
		{"it works", run.Output{Stdout: "no way"}, ""},
		{"it fails", run.Output{Stderr: "no way\nat all", Err: failed}, `7): "iptables-save" printed "no way".`},
		{"it says nothing", run.Output{Err: failed}, "printed nothing."},
		{"not started", run.Output{Err: run.ErrRefused}, ""},
		{"a message explains it", run.Output{Stderr: "Permission denied (you must be root)", Err: failed}, ""},
	} {
		o := permitted()
		test.out.Command = "iptables-save"
		o.runs = []run.Output{test.out}
		says(t, test.doc, o.unexplained(), test.want)
	}
}

// Where the answer is a guess: what was chosen, and the network.
func TestUncertain(t *testing.T) {
	for _, test := range []struct {
		doc  string
		how  here.How
		err  error
		own  bool
		nft  int
		want string
	}{
		{doc: "asked", how: here.Asked, want: "nothing proves"},
		{doc: "chosen", how: here.Variable},
		{doc: "chosen, and a question failed", how: here.Variable, err: unix.EIO, want: "nothing proves"},
		{doc: "a Pod's network", how: here.Asked, own: true, want: "a Pod's own network"},
		{doc: "a Pod's network with rules", how: here.Asked, own: true, nft: 1, want: "nothing proves"},
	} {
		o := permitted()
		o.Here.How = test.how
		o.Host.Evidence.NFT.Rules = test.nft
		o.Host.Evidence.Legacy.Err = test.err
		o.Network.Own = test.own
		says(t, test.doc, o.uncertain(), test.want)
	}
}

// A table that iptables lists in part, and one that it cannot list.
func TestUnreadableTable(t *testing.T) {
	const part = "# Table `filter' contains incompatible base-chains, use 'nft' tool to list them."
	const whole = "# Table `filter' is incompatible, use 'nft' tool."
	for _, test := range []struct {
		doc     string
		printed string
		listing listing
		want    string
	}{
		{"a rule that this iptables can read", "", newer, ""},
		{"a rule that this iptables cannot read", whole, newer, `chain "C" of ip filter`},
		{"base chains of nft", part, faithful, ""},
		{"a table that cannot be read", whole, faithful, "cannot read a rule"},
	} {
		o := permitted()
		o.runs = []run.Output{{Command: "iptables-save -t filter", Stderr: test.printed}}
		o.ruleset.tables = []table{{name: "filter", chains: map[string]*chain{"C": {listing: test.listing}}}}
		says(t, test.doc, o.nftTable(), test.want)
	}
}

// A match that cannot be loaded: where its library is there, the kernel lacks it.
func TestMatchNotLoaded(t *testing.T) {
	for library, want := range map[bool]string{true: `match or target "comment"`, false: ""} {
		o := permitted()
		o.library = library
		o.Messages = explain([]run.Output{{
			Command: "iptables -m comment -h",
			Stderr:  "iptables v1.8.9 (nf_tables): Couldn't load match `comment':No such file or directory",
		}})
		says(t, "a match", o.kernel(), want)
	}
}

// What a script says for each value of the variable: only the wrapper follows that.
func TestAsk(t *testing.T) {
	for _, test := range []struct {
		doc, script string
		wrapper     bool
		backend     detect.Backend
	}{
		{"it starts the wrapper", `echo "($IPTABLES_WRAPPER_BACKEND)" | sed s/nft/nf_tables/`, true, ""},
		{"it runs nft", `echo "(nf_tables)"`, false, detect.NFT},
		{"it knows only nft", `case $IPTABLES_WRAPPER_BACKEND in nft) echo "(nf_tables)" ;; esac`, false, ""},
	} {
		n := link.Name{Name: "iptables", Path: t.TempDir() + "/iptables"}
		host.Check(t, os.WriteFile(n.Path, []byte("#!/bin/sh\n"+test.script+"\n"), 0o755))
		ask(&run.Starter{Limit: run.Limit}, &n)
		if n.Wrapper != test.wrapper || n.Backend != test.backend {
			t.Errorf("%s: got %+v", test.doc, n)
		}
	}
}
