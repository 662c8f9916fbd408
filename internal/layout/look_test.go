// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// Each way in which a name can lead somewhere.
func TestLook(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "running", "sbin/", "sbin/iptables-wrapper", "sbin/xtables-nft-multi", "sbin/iptables-legacy-restore",
		"sbin/iptables-current -> iptables-wrapper", "other/", "other/iptables-current -> ../sbin/xtables-nft-multi",
		"alternatives/", "alternatives/iptables -> "+top+"/sbin/iptables-current",
		"busybox", "loop -> loop")
	sbin, other := top+"/sbin", top+"/other"
	for _, test := range []struct {
		doc, content string // of the link iptables; "" if there is nothing
		want         Name
		wrong        error
	}{
		{
			doc: "the switch, at the wrapper", content: "iptables-current",
			want: Name{ResolvesTo: sbin + "/iptables-wrapper", Wrapper: true, Switch: sbin},
		},
		{
			doc: "the switch, by alternatives", content: top + "/alternatives/iptables",
			want: Name{ResolvesTo: sbin + "/iptables-wrapper", Wrapper: true, Switch: sbin},
		},
		{
			doc: "another directory's switch, at a program", content: other + "/iptables-current",
			want: Name{ResolvesTo: sbin + "/xtables-nft-multi", Mode: evidence.NFT, Switch: other},
		},
		{
			doc: "the wrapper, without a switch", content: "iptables-wrapper",
			want: Name{ResolvesTo: sbin + "/iptables-wrapper", Wrapper: true},
		},
		{
			doc: "the running file, whatever its name", content: "../running",
			want: Name{ResolvesTo: top + "/running", Wrapper: true},
		},
		{
			doc: "a multi-call program", content: "xtables-nft-multi",
			want: Name{ResolvesTo: sbin + "/xtables-nft-multi", Mode: evidence.NFT},
		},
		{
			doc: "a single program", content: "iptables-legacy-restore",
			want: Name{ResolvesTo: sbin + "/iptables-legacy-restore", Mode: evidence.Legacy},
		},
		{doc: "none of iptables'", content: "../busybox", want: Name{ResolvesTo: top + "/busybox"}},
		{doc: "nowhere", content: "gone", wrong: os.ErrNotExist},
		{doc: "a switch that leads nowhere", content: "../alternatives/iptables-current", wrong: os.ErrNotExist,
			want: Name{Switch: sbin + "/../alternatives"}},
		{doc: "nothing", wrong: os.ErrNotExist, want: Name{Missing: true}},
	} {
		_ = os.Remove(sbin + "/iptables")
		if test.content != "" {
			grow(t, sbin, "iptables -> "+test.content)
		}
		got := Look(opened(t, sbin), idOf(t, top+"/running"))[0]
		if !errors.Is(got.Err, test.wrong) {
			t.Errorf("%s: got %v", test.doc, got.Err)
		}
		test.want.Name = "iptables"
		test.want.Path = sbin + "/iptables"
		got.Err = nil
		if got != test.want {
			t.Errorf("%s: got %+v", test.doc, got)
		}
	}
	names := Look(opened(t, top), idOf(t, top+"/running"))
	if len(names) != numberOfNames || names[5].Name != "ip6tables-restore" || !names[5].Missing {
		t.Errorf("got %+v", names)
	}
}

// What a switch may contain, and what that stands for.
func TestContentOfSwitch(t *testing.T) {
	for _, test := range []struct {
		content string
		ours    bool
		stored  evidence.Mode
	}{
		{content: "iptables-wrapper", ours: true},
		{content: "/opt/bin/iptables-wrapper", ours: true},
		{content: "xtables-nft-multi", ours: true, stored: evidence.NFT},
		{content: "/usr/sbin/xtables-legacy-multi", ours: true, stored: evidence.Legacy},
		{content: "iptables-nft"},
		{content: "iptables-wrapper/other"},
		{content: "/etc/alternatives/iptables"},
	} {
		directory := t.TempDir()
		grow(t, directory, "iptables-current -> "+test.content)
		d := opened(t, directory)
		content, err := Content(d)
		want := test.content
		if !test.ours {
			want = ""
		}
		if content != want || errors.Is(err, ErrForeign) == test.ours || Stored(d) != test.stored {
			t.Errorf("%s: got %q, %v, %q", test.content, content, err, Stored(d))
		}
	}
	if got := Stored(opened(t, t.TempDir())); got != "" {
		t.Errorf("no switch: got %q", got)
	}
}
