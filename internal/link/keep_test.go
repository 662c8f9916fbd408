// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	guess := Decision{Backend: detect.NFT, Complete: true, Root: true}
	certain := Decision{Backend: detect.NFT, Certain: true, Root: true}
	incomplete := Decision{Backend: detect.NFT, Root: true}
	user := Decision{Backend: detect.NFT, Certain: true, Complete: true}
	both, neither := kept{"xtables-nft-multi", "nft"}, kept{Wrapper, ""}
	onlyRecord, onlySwitch := kept{Wrapper, "nft"}, kept{"xtables-nft-multi", ""}
	atWrapper := wrapped(Wrapper)
	copied := with(atWrapper[1:3], "iptables", "iptables-save -> iptables")
	for _, test := range []struct {
		doc      string
		answer   Decision
		tree     []string
		running  string // "": iptables-wrapper
		program  string // "": the multi-call program in DIR
		recorded string
		readOnly bool
		change   func(d *Dir, r *Record)
		runs     detect.Backend // "": nft
		want     kept
	}{
		{doc: "certain", answer: certain, want: both},
		{doc: "a guess", answer: guess, want: onlyRecord},
		{doc: "a guess, and something could not be asked", answer: incomplete, want: neither},
		{doc: "another user", answer: user, want: neither},

		{
			doc: "a guess, and a record", answer: guess, recorded: "legacy",
			runs: detect.Legacy, want: kept{Wrapper, "legacy"},
		},
		{
			doc: "another user's guess, and a record", answer: Decision{Backend: detect.NFT}, recorded: "legacy",
			runs: detect.Legacy, want: kept{Wrapper, "legacy"},
		},
		{doc: "certain, and a record of the other", answer: certain, recorded: "legacy", want: both},

		{doc: "the switch points to a program", answer: certain, tree: wrapped("xtables-legacy-multi"),
			want: kept{"xtables-legacy-multi", ""}},
		{doc: "no switch", answer: certain, tree: without(atWrapper, Switch), want: kept{}},
		{doc: "no switch, a guess", answer: guess, tree: without(atWrapper, Switch), want: kept{}},
		{doc: "a foreign switch", answer: certain, tree: wrapped("/bin/true"), want: kept{"/bin/true", ""}},

		{doc: "read-only", answer: certain, readOnly: true, want: onlyRecord},
		{doc: "read-only, a guess", answer: guess, readOnly: true, want: onlyRecord},
		{
			doc: "no place for a record", answer: certain, want: onlySwitch,
			change: func(_ *Dir, r *Record) { *r = Record{} },
		},
		{
			doc: "no place for a record, a guess", answer: guess, want: neither,
			change: func(_ *Dir, r *Record) { *r = Record{} },
		},
		{
			doc: "the record cannot be made", answer: certain, want: onlySwitch,
			change: func(_ *Dir, r *Record) { r.Dev = open(t, readOnly(t, "/dev")) },
		},
		{
			doc: "a user holds the lock", answer: certain, want: onlyRecord,
			change: func(d *Dir, _ *Record) { host.Check(t, open(t, d.Path()).Lock(0)) },
		},
		{
			doc: "another call was faster", answer: certain, runs: detect.Legacy,
			change: func(d *Dir, _ *Record) {
				d.Step = func(operation, _ string) {
					if operation == "lock" {
						host.Check(t, open(t, d.Path()).Replace("xtables-legacy-multi", Switch))
					}
				}
			},
			want: kept{"xtables-legacy-multi", "nft"},
		},
		{
			doc: "the switch was removed meanwhile", answer: certain, want: kept{"", "nft"},
			change: func(d *Dir, _ *Record) {
				d.Step = func(operation, _ string) {
					if operation == "lock" {
						host.Check(t, open(t, d.Path()).Remove(Switch))
					}
				}
			},
		},
		{
			doc: "only single programs", answer: certain, want: onlyRecord,
			tree: with(atWrapper, "iptables-nft"), program: "iptables-nft",
		},
		{
			doc: "a temporary link is left", answer: certain, want: both,
			tree: with(atWrapper, "iptables-current.new -> gone"),
		},

		{doc: "copied", answer: certain, tree: copied, running: "iptables", want: both},
		{doc: "copied, a guess", answer: guess, tree: copied, running: "iptables", want: kept{"", "nft"}},
		{
			doc: "copied, and iptables-wrapper is another file", answer: certain, running: "iptables",
			tree: with(copied, Wrapper), want: kept{},
		},
		{
			doc: "copied over a wrapped name, and it is another file", answer: certain, running: "iptables",
			tree: with(without(atWrapper, "iptables"), "iptables"), want: neither,
		},
		{
			doc: "copied, and an old switch points to the other program", answer: certain, running: "iptables",
			tree: with(copied, "iptables-current -> xtables-legacy-multi"), want: kept{"xtables-legacy-multi", ""},
		},
	} {
		top := t.TempDir()
		if test.tree == nil {
			test.tree = atWrapper
		}
		grow(t, top, test.tree...)
		d, r := open(t, top), openRecord(t)
		path, dev := r.Path(), r.Dev
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
		test.answer.Program = d.Join("xtables-nft-multi")
		if test.program != "" {
			changes := false // whether it tries to change what it cannot
			if test.readOnly {
				d.Step = func(operation, _ string) { changes = changes || operation == "lock" }
			}
			test.answer.Program = d.Join(test.program)
		}
		runs := Keep(d, r, test.answer)
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
	if got := Keep(nil, record, certain); got != detect.NFT || record.Read() != "" {
		t.Errorf("no DIR: got %s, and %q is recorded", got, record.Read())
	}
}

// Only what is found in the mounts and in the network of process 1 is kept.
func TestKeepElsewhere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Check(t, os.Mkdir("/run/root", 0o755))
	host.Check(t, unix.Mount("/", "/run/root", "", unix.MS_BIND|unix.MS_REC, ""))
	for _, test := range []struct {
		doc    string
		change func(cmd *exec.Cmd)
		want   kept
	}{
		{"a child", func(*exec.Cmd) {}, kept{"xtables-legacy-multi", "legacy"}},
		{"another network", func(c *exec.Cmd) { c.SysProcAttr.Cloneflags = unix.CLONE_NEWNET }, kept{Wrapper, ""}},
		{"a chroot", func(c *exec.Cmd) { c.SysProcAttr.Chroot = "/run/root" }, kept{Wrapper, ""}},
	} {
		top := t.TempDir()
		grow(t, top, wrapped(Wrapper)...)
		got := ask(t, "keep", func(c *exec.Cmd) {
			c.Args = []string{"keep", top}
			test.change(c)
		})
		after := kept{stored: content(top + "/" + Switch)}
		records, err := filepath.Glob("/dev/iptables-backend-*")
		host.Check(t, err)
		for _, path := range records { // of any network
			after.recorded += content(path)
			host.Check(t, os.Remove(path))
		}
		if got != "legacy" || after != test.want {
			t.Errorf("%s: runs %s, and %+v", test.doc, got, after)
		}
	}
	host.Check(t, unix.Unmount("/run/root", unix.MNT_DETACH))
}

func keepsCertain() {
	d, err := Open(os.Args[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	var st unix.Stat_t
	err = unix.Lstat(d.Join(Wrapper), &st)
	if err != nil {
		fmt.Println(err)
		return
	}
	d.SetRunning(Wrapper, st)
	record, err := OpenRecord()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(Keep(d, record, Decision{
		Backend: detect.Legacy, Program: d.Join("xtables-legacy-multi"), Certain: true, Root: true,
	}))
}
