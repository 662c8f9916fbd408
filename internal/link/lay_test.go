// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The binary was copied over a command. Names that lead to it lead to the switch then, and no others.
func TestAdopt(t *testing.T) {
	for _, test := range []struct {
		doc    string
		before []string // iptables is the running file
		copied bool     // it can be adopted
		fails  bool
		after  string // "": as before
	}{
		{
			doc: "copied, with a hard link, links, and names that lead elsewhere", copied: true,
			before: []string{
				"xtables-nft-multi", "ip6tables = iptables", "iptables-save -> iptables",
				"ip6tables-save -> iptables-save",
				"iptables-restore -> xtables-nft-multi", "ip6tables-restore -> gone",
				"iptables-nft -> xtables-nft-multi", "iptables-apply -> iptables",
			},
			after: "ip6tables -> iptables-current, ip6tables-restore -> gone, ip6tables-save -> iptables-current, " +
				"iptables -> iptables-current, iptables-apply -> iptables, iptables-current -> iptables-wrapper, " +
				"iptables-nft -> xtables-nft-multi, iptables-restore -> xtables-nft-multi, " +
				"iptables-save -> iptables-current, iptables-wrapper, xtables-nft-multi",
		},
		{
			doc: "iptables-wrapper is the running file already", copied: true,
			before: []string{"iptables-wrapper = iptables"},
			after:  "iptables -> iptables-current, iptables-current -> iptables-wrapper, iptables-wrapper",
		},
		{
			doc: "iptables-wrapper leads to the running file", copied: true,
			before: []string{"other = iptables", "iptables-wrapper -> other"},
			after: "iptables -> iptables-current, iptables-current -> iptables-wrapper, " +
				"iptables-wrapper -> other, other",
		},
		{
			doc: "a switch is there, points to a program, and the wrapper's file is the running one", copied: true,
			before: []string{"iptables-current -> xtables-nft-multi", "iptables-wrapper = iptables"},
			after:  "iptables -> iptables-current, iptables-current -> xtables-nft-multi, iptables-wrapper",
		},
		{
			doc:    "a switch is left over, and points to a program",
			before: []string{"iptables-current -> xtables-nft-multi"},
		},
		{doc: "iptables-wrapper is another file", before: []string{"iptables-wrapper"}},
		{doc: "iptables-wrapper leads nowhere", before: []string{"iptables-wrapper -> gone"}},
		{doc: "a link has the name of the switch", before: []string{"iptables-current -> other"}},
		{doc: "a file has the name of the switch", before: []string{"iptables-current"}},
		{
			doc:    "a link has the name of the switch, and iptables-wrapper is the running file",
			before: []string{"iptables-current -> other", "iptables-wrapper = iptables"}, copied: true, fails: true,
		},
	} {
		top := t.TempDir()
		grow(t, top, append([]string{"iptables"}, test.before...)...)
		running, err := os.Stat(top + "/iptables")
		host.Check(t, err)
		want := test.after
		if want == "" {
			want = list(t, top)
		}
		d := open(t, top)
		runs(t, d, "iptables")
		if d.isOpen() != test.copied {
			t.Errorf("%s: a copy: %t", test.doc, !test.copied)
		}
		if !test.copied {
			continue
		}
		err = d.adopt()
		if got := list(t, top); got != want || (err != nil) != test.fails {
			t.Errorf("%s: got %v\n%s\nwant\n%s", test.doc, err, got, want)
		}
		adopted, err := os.Stat(top + "/iptables-wrapper")
		if !test.fails && (err != nil || !os.SameFile(adopted, running)) {
			t.Errorf("%s: iptables-wrapper is another file", test.doc)
		}
	}
}

// What has another name than the six is no copy. What another call has adopted is linked to the switch once more.
func TestNotAdopted(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "iptables-wrapper", "iptables -> iptables-current", "iptables-current -> iptables-wrapper")
	before := list(t, top)
	d := open(t, top)
	runs(t, d, "iptables-wrapper")
	d.Running = "iptables-apply"
	if d.isOpen() {
		t.Error("iptables-apply is a copy")
	}
	d.Running = "iptables"
	err := d.adopt()
	if got := list(t, top); got != before || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestLay(t *testing.T) {
	for _, test := range []struct {
		doc    string
		before []string
		names  []string
		wrong  error
		after  string
	}{
		{
			doc: "in an empty directory", names: exec.Names(),
			after: "ip6tables -> iptables-current, ip6tables-restore -> iptables-current, " +
				"ip6tables-save -> iptables-current, iptables -> iptables-current, " +
				"iptables-current -> iptables-wrapper, iptables-restore -> iptables-current, " +
				"iptables-save -> iptables-current",
		},
		{
			doc: "once more", names: exec.Names()[:1],
			before: []string{"iptables -> iptables-current", "iptables-current -> xtables-nft-multi"},
			after:  "iptables -> iptables-current, iptables-current -> xtables-nft-multi",
		},
		{
			doc: "a directory has one of the names", names: []string{"iptables", "ip6tables"},
			before: []string{"iptables/"}, wrong: unix.EISDIR,
			after: "iptables, iptables-current -> iptables-wrapper",
		},
		{
			doc: "a foreign link has the name of the switch", names: exec.Names(),
			before: []string{"iptables-current -> /bin/true"}, wrong: ErrForeign,
			after: "iptables-current -> /bin/true",
		},
	} {
		top := t.TempDir()
		grow(t, top, test.before...)
		err := open(t, top).Lay(test.names)
		if got := list(t, top); got != test.after || !errors.Is(err, test.wrong) {
			t.Errorf("%s: got %v\n%s", test.doc, err, got)
		}
	}
}

// What a switch may contain, and which backend that is.
func TestStored(t *testing.T) {
	for _, test := range []struct {
		content string
		foreign bool
		want    string
	}{
		{content: "iptables-wrapper"},
		{content: "/opt/bin/iptables-wrapper"},
		{content: "xtables-nft-multi", want: "nft"},
		{content: "/usr/sbin/xtables-legacy-multi", want: "legacy"},
		{content: "iptables-nft", foreign: true},
		{content: "iptables-wrapper/other", foreign: true},
		{content: "/etc/alternatives/iptables", foreign: true},
	} {
		directory := t.TempDir()
		grow(t, directory, "iptables-current -> "+test.content)
		got, err := open(t, directory).Stored()
		if string(got) != test.want || errors.Is(err, ErrForeign) != test.foreign || !test.foreign && err != nil {
			t.Errorf("%s: got %q, %v", test.content, got, err)
		}
	}
	directory := t.TempDir()
	_, err := open(t, directory).Stored()
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no switch: got %v", err)
	}
	grow(t, directory, "iptables-current")
	_, err = open(t, directory).Stored()
	if !errors.Is(err, ErrForeign) {
		t.Errorf("a file: got %v", err)
	}
}

// What the switch contains for a program.
func TestContentFor(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "sbin/", "sbin/xtables-nft-multi", "sbin/iptables-nft -> xtables-nft-multi", "sbin/iptables-legacy",
		"other/", "other/xtables-legacy-multi", "other/xtables-nft-multi", "other/link -> xtables-legacy-multi",
		"sbin/ip6tables-legacy -> ../other/link", "sbin/ip6tables-nft -> gone")
	d := open(t, top+"/sbin")
	for _, test := range []struct {
		backend, program string
		want             string
		wrong            error
	}{
		{backend: "nft", program: "sbin/xtables-nft-multi", want: "xtables-nft-multi"},
		{backend: "nft", program: "sbin/iptables-nft", want: "xtables-nft-multi"},
		{backend: "nft", program: "other/xtables-nft-multi", want: "/other/xtables-nft-multi"},
		{backend: "legacy", program: "sbin/ip6tables-legacy", want: "/other/xtables-legacy-multi"},
		{backend: "legacy", program: "sbin/iptables-legacy", wrong: ErrSingle},
		{backend: "legacy", program: "sbin/xtables-nft-multi", wrong: ErrSingle},
		{backend: "nft", program: "sbin/ip6tables-nft", wrong: os.ErrNotExist},
	} {
		got, err := d.contentFor(detect.Backend(test.backend), top+"/"+test.program)
		got = strings.TrimPrefix(got, top)
		if got != test.want || !errors.Is(err, test.wrong) {
			t.Errorf("%s, %s: got %q, %v", test.backend, test.program, got, err)
		}
	}
}

// runs makes a file of a directory the running one. That file keeps one more name, elsewhere.
func runs(t *testing.T, d *Dir, name string) {
	t.Helper()
	d.Running = name
	d.Exe = t.TempDir() + "/exe"
	err := os.Link(d.Join(name), d.Exe)
	if err != nil { // it may be gone, or on a read-only mount
		d.Exe = d.Join(name)
	}
}

// What took the name of the running file between the question and the lock is not the wrapper, and is left alone.
func TestAdoptsOnlyItself(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "iptables")
	d := open(t, top)
	runs(t, d, "iptables")
	host.Check(t, os.WriteFile(top+"/another", nil, 0o755))
	host.Check(t, os.Rename(top+"/another", top+"/iptables"))
	host.Check(t, d.adopt())
	want := "iptables, iptables-current -> iptables-wrapper, iptables-wrapper"
	if got := list(t, top); got != want || !d.isRunning(Wrapper) {
		t.Errorf("got %s", got)
	}
	host.Check(t, os.Remove(d.Exe))
	host.Check(t, os.Remove(top+"/iptables-wrapper"))
	err := d.adopt()
	if got := list(t, top); got != "iptables, iptables-current -> iptables-wrapper" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its last name is gone: got %s, %v", got, err)
	}
}

// An image has hard links to the binary. The first change makes the running file another inode than the others.
func TestAdoptInOverlay(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	top := t.TempDir()
	host.Check(t, unix.Mount("none", top, "tmpfs", 0, "")) // an overlay cannot be on another one
	defer unix.Unmount(top, unix.MNT_DETACH)
	grow(t, top, "lower/", "upper/", "work/", "sbin/", "lower/iptables", "lower/ip6tables = lower/iptables",
		"lower/iptables-save -> ip6tables")
	layers := "lowerdir=" + top + "/lower,upperdir=" + top + "/upper,workdir=" + top + "/work,index=off"
	host.Check(t, unix.Mount("overlay", top+"/sbin", "overlay", 0, layers))
	defer unix.Unmount(top+"/sbin", unix.MNT_DETACH)
	d := open(t, top+"/sbin")
	d.Running, d.Exe = "iptables", top+"/sbin/iptables"
	host.Check(t, d.adopt())
	want := "ip6tables -> iptables-current, iptables -> iptables-current, iptables-current -> iptables-wrapper, " +
		"iptables-save -> iptables-current, iptables-wrapper"
	if got := list(t, top+"/sbin"); got != want {
		t.Errorf("got %s", got)
	}
}
