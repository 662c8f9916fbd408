// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
)

// The binary was copied over a command. Names that lead to it lead through the switch then, and no others.
func TestAdopt(t *testing.T) {
	for _, test := range []struct {
		doc    string
		before []string // iptables is the running file
		fails  bool
		after  string // "": as before
	}{
		{
			doc: "copied, with a hard link, links, and names that lead elsewhere",
			before: []string{
				"xtables-nft-multi", "ip6tables = iptables", "iptables-save -> iptables",
				"ip6tables-save -> iptables-save",
				"iptables-restore -> xtables-nft-multi", "ip6tables-restore -> gone",
				"iptables-nft -> xtables-nft-multi", "iptables-apply -> iptables",
			},
			after: lines("ip6tables -> iptables-current", "ip6tables-restore -> gone",
				"ip6tables-save -> iptables-current",
				"iptables -> iptables-current", "iptables-apply -> iptables", "iptables-current -> iptables-wrapper",
				"iptables-nft -> xtables-nft-multi", "iptables-restore -> xtables-nft-multi",
				"iptables-save -> iptables-current", "iptables-wrapper = wrapper", "xtables-nft-multi"),
		},
		{
			doc: "iptables-wrapper is the running file already", before: []string{"iptables-wrapper = iptables"},
			after: lines("iptables -> iptables-current", "iptables-current -> iptables-wrapper",
				"iptables-wrapper = wrapper"),
		},
		{
			doc:    "iptables-wrapper leads to the running file",
			before: []string{"other = iptables", "iptables-wrapper -> other"},
			after: lines("iptables -> iptables-current", "iptables-current -> iptables-wrapper",
				"iptables-wrapper -> other", "other = wrapper"),
		},
		{
			doc: "a switch is there, and at a program", before: []string{"iptables-current -> xtables-nft-multi"},
			after: lines("iptables -> iptables-current", "iptables-current -> xtables-nft-multi",
				"iptables-wrapper = wrapper"),
		},
		{doc: "iptables-wrapper is another file", before: []string{"iptables-wrapper"}, fails: true},
		{doc: "iptables-wrapper leads nowhere", before: []string{"iptables-wrapper -> gone"}, fails: true},
		{
			doc: "the switch's name is taken by a link", before: []string{"iptables-current -> other"}, fails: true,
			after: lines("iptables = wrapper", "iptables-current -> other", "iptables-wrapper = wrapper"),
		},
		{
			doc: "the switch's name is taken by a file", before: []string{"iptables-current"}, fails: true,
			after: lines("iptables = wrapper", "iptables-current", "iptables-wrapper = wrapper"),
		},
	} {
		top := t.TempDir()
		grow(t, top, append([]string{"iptables"}, test.before...)...)
		running := idOf(t, top+"/iptables")
		want := test.after
		if want == "" {
			want = list(t, top, running)
		}
		err := adopt(Place{Command: top + "/iptables", Dir: opened(t, top), Running: running})
		if got := list(t, top, running); got != want || (err != nil) != test.fails {
			t.Errorf("%s: got %v\n%s\nwant\n%s", test.doc, err, got, want)
		}
	}
}

// The command is a link to a file elsewhere: that file gets a hard link, not the link.
func TestAdoptLink(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "file", "sbin/", "sbin/iptables -> ../file")
	running := idOf(t, top+"/file")
	err := adopt(Place{Command: top + "/sbin/iptables", Dir: opened(t, top+"/sbin"), Running: running})
	want := lines("iptables -> iptables-current", "iptables-current -> iptables-wrapper", "iptables-wrapper = wrapper")
	if got := list(t, top+"/sbin", running); got != want || err != nil {
		t.Errorf("got %v\n%s", err, got)
	}
}

func TestLay(t *testing.T) {
	for _, test := range []struct {
		doc, wrapper string
		before       []string
		names        []string
		wrong        error
		fails        bool
		after        string
	}{
		{
			doc: "in an empty directory, the wrapper elsewhere", wrapper: "/opt/iptables-wrapper", names: exec.Names(),
			after: lines("ip6tables -> iptables-current", "ip6tables-restore -> iptables-current",
				"ip6tables-save -> iptables-current", "iptables -> iptables-current",
				"iptables-current -> /opt/iptables-wrapper", "iptables-restore -> iptables-current",
				"iptables-save -> iptables-current"),
		},
		{
			doc: "once more", wrapper: "iptables-wrapper", names: exec.Names()[:1],
			before: []string{"iptables -> iptables-current", "iptables-current -> iptables-wrapper"},
			after:  lines("iptables -> iptables-current", "iptables-current -> iptables-wrapper"),
		},
		{
			doc: "the wrapper's file has another name", wrapper: "/opt/wrapper", names: exec.Names(), fails: true,
		},
		{
			doc: "a directory in the place of a name", wrapper: "iptables-wrapper",
			names: []string{"iptables", "ip6tables"}, before: []string{"iptables/"}, fails: true, wrong: unix.EISDIR,
			after: lines("iptables/", "iptables-current -> iptables-wrapper"),
		},
		{
			doc: "the switch's name is taken", wrapper: "iptables-wrapper", names: exec.Names(),
			before: []string{"iptables-current -> /bin/true"}, fails: true,
			after: "iptables-current -> /bin/true",
		},
	} {
		top := t.TempDir()
		grow(t, top, test.before...)
		err := Lay(opened(t, top), test.wrapper, test.names)
		got := list(t, top, dir.ID{})
		if got != test.after || (err != nil) != test.fails || test.wrong != nil && !errors.Is(err, test.wrong) {
			t.Errorf("%s: got %v\n%s", test.doc, err, got)
		}
	}
}
