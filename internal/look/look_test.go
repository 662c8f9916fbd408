// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each way in which a command can lead somewhere.
func TestAt(t *testing.T) {
	top := t.TempDir()
	self, err := os.Executable()
	host.Check(t, err)
	shell(t, top, `ln -s $0 running; mkdir sbin other alternatives
		: >sbin/xtables-nft-multi; : >sbin/iptables-legacy-restore; : >other/iptables-wrapper
		chmod 755 sbin/* other/iptables-wrapper
		ln -s iptables-wrapper sbin/iptables-current; ln -s ../sbin/xtables-nft-multi other/iptables-current
		ln -s $PWD/sbin/iptables-current alternatives/iptables`, self)
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
		{doc: "a directory", content: "../other", wrong: os.ErrPermission, want: Command{ResolvesTo: other}},
		{doc: "nowhere", content: "gone", wrong: os.ErrNotExist},
		{doc: "a switch that leads nowhere", content: "../alternatives/iptables-current", wrong: os.ErrNotExist,
			want: Command{Switch: top + "/alternatives"}},
		{doc: "nothing", wrong: os.ErrNotExist, want: Command{Missing: true}},
	} {
		_ = os.Remove(sbin + "/iptables")
		if test.content != "" {
			host.Check(t, os.Symlink(test.content, sbin+"/iptables"))
		}
		got := At(sbin + "/iptables")
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
	d, err := link.Open(top)
	host.Check(t, err)
	defer d.Close()
	commands := In(d)
	if len(commands) != 6 || commands[5].Name != "ip6tables-restore" || !commands[5].Missing {
		t.Errorf("got %+v", commands)
	}
}

// shell runs a script in a directory, with $0.
func shell(t *testing.T, dir, script, zero string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script, zero)
	cmd.Dir = dir
	host.Output(t, cmd)
}
