// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each way in which a name can lead somewhere.
func TestLook(t *testing.T) {
	top := t.TempDir()
	self, err := os.Executable()
	host.Check(t, err)
	grow(t, top, "running -> "+self, "sbin/", "sbin/iptables-wrapper", "sbin/xtables-nft-multi",
		"sbin/iptables-legacy-restore",
		"sbin/iptables-current -> iptables-wrapper", "other/", "other/iptables-wrapper",
		"other/iptables-current -> ../sbin/xtables-nft-multi",
		"alternatives/", "alternatives/iptables -> "+top+"/sbin/iptables-current")
	sbin, other := top+"/sbin", top+"/other"
	host.Check(t, os.WriteFile(sbin+"/iptables-wrapper", []byte("\x7fELF"+mark), 0o755))
	for _, test := range []struct {
		doc, content string // of the link iptables; "" if there is nothing
		want         Command
		wrong        error
	}{
		{
			doc: "the switch, by alternatives", content: top + "/alternatives/iptables",
			want: Command{ResolvesTo: sbin + "/iptables-wrapper", Wrapper: true, Switch: sbin},
		},
		{
			doc: "another directory's switch, at a program", content: other + "/iptables-current",
			want: Command{ResolvesTo: sbin + "/xtables-nft-multi", Backend: detect.NFT, Switch: other},
		},
		{
			doc: "the running file, whatever its name", content: "../running",
			want: Command{ResolvesTo: self, Wrapper: true},
		},
		{
			doc: "another program of the wrapper's name", content: "../other/iptables-wrapper",
			want: Command{ResolvesTo: other + "/iptables-wrapper"},
		},
		{
			doc: "a single program", content: "iptables-legacy-restore",
			want: Command{ResolvesTo: sbin + "/iptables-legacy-restore", Backend: detect.Legacy},
		},
		{doc: "nowhere", content: "gone", wrong: os.ErrNotExist},
		{doc: "a switch that leads nowhere", content: "../alternatives/iptables-current", wrong: os.ErrNotExist,
			want: Command{Switch: top + "/alternatives"}},
		{doc: "nothing", wrong: os.ErrNotExist, want: Command{Missing: true}},
	} {
		_ = os.Remove(sbin + "/iptables")
		if test.content != "" {
			grow(t, sbin, "iptables -> "+test.content)
		}
		got := Look(open(t, sbin))[0]
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
	names := Look(open(t, top))
	if len(names) != 6 || names[5].Name != "ip6tables-restore" || !names[5].Missing {
		t.Errorf("got %+v", names)
	}
}
