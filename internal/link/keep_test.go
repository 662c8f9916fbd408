// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// kept is what one call has kept: what is in the switch, and in the record.
type kept struct{ stored, recorded string }

// Each condition of keeping an answer. The call's own answer is nft.
func TestKeep(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const guess, certain = false, true
	both, neither := kept{"xtables-nft-multi", "nft"}, kept{Wrapper, ""}
	onlyRecord, onlySwitch := kept{Wrapper, "nft"}, kept{"xtables-nft-multi", ""}
	atWrapper := wrapped(Wrapper)
	copied := with(atWrapper[1:3], "iptables", "iptables-save -> iptables")
	for _, test := range []struct {
		doc      string
		certain  bool
		tree     []string
		running  string // "": iptables-wrapper
		program  string // "": the multi-call program in DIR
		recorded string
		readOnly bool
		change   func(d *Dir, r *Record)
		runs     detect.Backend // "": nft
		want     kept
	}{
		{doc: "certain", certain: certain, want: both},
		{doc: "a guess", certain: guess, want: onlyRecord},

		{
			doc: "a guess, and a record", certain: guess, recorded: "legacy",
			runs: detect.Legacy, want: kept{Wrapper, "legacy"},
		},
		{doc: "certain, and a record of the other", certain: certain, recorded: "legacy", want: both},

		{doc: "the switch points to a program", certain: certain, tree: wrapped("xtables-legacy-multi"),
			want: kept{"xtables-legacy-multi", ""}},
		{doc: "no switch", certain: certain, tree: without(atWrapper, Switch), want: kept{}},
		{doc: "no switch, a guess", certain: guess, tree: without(atWrapper, Switch), want: kept{}},
		{doc: "a foreign switch", certain: certain, tree: wrapped("/bin/true"), want: kept{"/bin/true", ""}},

		{doc: "read-only", certain: certain, readOnly: true, want: onlyRecord},
		{doc: "read-only, a guess", certain: guess, readOnly: true, want: onlyRecord},
		{
			doc: "no place for a record", certain: certain, want: onlySwitch,
			change: func(_ *Dir, r *Record) { *r = Record{} },
		},
		{
			doc: "no place for a record, a guess", certain: guess, want: neither,
			change: func(_ *Dir, r *Record) { *r = Record{} },
		},
		{
			doc: "the record cannot be made", certain: certain, want: onlySwitch,
			change: func(_ *Dir, r *Record) { r.Dev = open(t, readOnly(t, "/dev")) },
		},
		{
			doc: "a user holds the lock", certain: certain, want: onlyRecord,
			change: func(d *Dir, _ *Record) { host.Check(t, open(t, d.Path).Lock(0)) },
		},
		{
			doc: "another call was faster", certain: certain, runs: detect.Legacy,
			change: func(d *Dir, _ *Record) {
				d.Step = func(operation, _ string) {
					if operation == "lock" {
						host.Check(t, open(t, d.Path).Replace("xtables-legacy-multi", Switch))
					}
				}
			},
			want: kept{"xtables-legacy-multi", "nft"},
		},
		{
			doc: "a guess, and another call has recorded and stored the other before it looks", certain: guess,
			change: func(d *Dir, r *Record) {
				path := pathOf(*r)
				d.Step = func(operation, name string) {
					if operation == "readlink" {
						host.Check(t, os.Symlink("legacy", path))
						host.Check(t, open(t, d.Path).Replace("xtables-legacy-multi", Switch))
					}
				}
			},
			runs: detect.Legacy, want: kept{"xtables-legacy-multi", "legacy"},
		},
		{
			doc: "the switch was removed meanwhile", certain: certain, want: kept{"", "nft"},
			change: func(d *Dir, _ *Record) {
				d.Step = func(operation, _ string) {
					if operation == "lock" {
						host.Check(t, open(t, d.Path).remove(Switch))
					}
				}
			},
		},
		{
			doc: "others can write the directory", certain: certain, want: onlyRecord,
			change: func(d *Dir, _ *Record) { host.Check(t, os.Chmod(d.Path, 0o775)) },
		},
		{
			doc: "others can write the directory, a guess", certain: guess, want: onlyRecord,
			change: func(d *Dir, _ *Record) { host.Check(t, os.Chmod(d.Path, 0o775)) },
		},
		{
			doc: "only single programs", certain: certain, want: onlyRecord,
			tree: with(atWrapper, "iptables-nft"), program: "iptables-nft",
		},
		{
			doc: "a temporary link is left", certain: certain, want: both,
			tree: with(atWrapper, "iptables-current.new -> gone"),
		},

		{doc: "copied", certain: certain, tree: copied, running: "iptables", want: both},
		{doc: "copied, a guess", certain: guess, tree: copied, running: "iptables", want: kept{"", "nft"}},
		{
			doc: "copied, and iptables-wrapper is another file", certain: certain, running: "iptables",
			tree: with(copied, Wrapper), want: kept{},
		},
		{
			doc: "copied over a wrapped name, and it is another file", certain: certain, running: "iptables",
			tree: with(without(atWrapper, "iptables"), "iptables"), want: neither,
		},
		{
			doc: "copied, and an old switch points to the other program", certain: certain, running: "iptables",
			tree: with(copied, "iptables-current -> xtables-legacy-multi"), want: kept{"xtables-legacy-multi", ""},
		},
	} {
		top := t.TempDir()
		if test.tree == nil {
			test.tree = atWrapper
		}
		grow(t, top, test.tree...)
		d, r := open(t, top), openRecord(t)
		path, dev := pathOf(r), r.Dev
		if test.readOnly {
			d = open(t, readOnly(t, top))
		}
		if test.recorded != "" {
			host.Check(t, os.Symlink(test.recorded, path))
		}
		runs(t, d, cmp.Or(test.running, Wrapper))
		if test.change != nil {
			test.change(d, &r)
		}
		changes := false // whether it tries to change what it cannot
		if test.readOnly {
			d.Step = func(operation, _ string) { changes = changes || operation == "lock" }
		}
		program := cmp.Or(test.program, "xtables-nft-multi")
		runs := Keep(d, r, detect.NFT, d.Join(program), test.certain)
		got := kept{content(top + "/" + Switch), content(path)}
		if test.runs == "" {
			test.runs = detect.NFT
		}
		if changes {
			t.Errorf("%s: it takes the lock", test.doc)
		}
		if runs != test.runs || got != test.want || strings.Contains(list(t, top)+list(t, "/dev"), ".new") {
			t.Errorf("%s: runs %s, and %+v; want %s, %+v", test.doc, runs, got, test.runs, test.want)
		}
		d.Close() // and releases the lock
		_ = os.Remove(path)
		dev.Close()
	}
	record := openRecord(t)
	for _, certain := range []bool{guess, certain} {
		got := Keep(nil, record, detect.NFT, "/usr/sbin/xtables-nft-multi", certain)
		if got != detect.NFT || record.Read() != "" {
			t.Errorf("no DIR, certain %v: got %s, and %q is recorded", certain, got, record.Read())
		}
	}
	host.Check(t, os.Symlink("legacy", pathOf(record)))
	got := Keep(nil, record, detect.NFT, "/usr/sbin/xtables-nft-multi", guess)
	if got != detect.Legacy {
		t.Errorf("no DIR, and another call has made a record: got %s", got)
	}
}
