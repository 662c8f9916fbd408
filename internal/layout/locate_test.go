// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The place of a command is where its switch is, or is to be. It is not known where the path does not lead to the
// running file, nor through a switch beside which that is.
func TestLocate(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"sbin", "alternatives", "volume", "copied"} {
		host.Check(t, os.Mkdir(top+"/"+name, 0o755))
	}
	file := top + "/sbin/" + Wrapper
	for _, path := range []string{file, top + "/sbin/xtables-nft-multi", top + "/sbin/script"} {
		host.Check(t, os.WriteFile(path, nil, 0o755))
	}
	host.Check(t, os.Link(file, top+"/copied/iptables"))
	for path, target := range map[string]string{
		"sbin/iptables":            Switch,
		"sbin/" + Switch:           "xtables-nft-multi", // another call moved it after execve(2)
		"sbin/ip6tables":           top + "/alternatives/ip6tables",
		"alternatives/ip6tables":   "../sbin/" + Switch,
		"volume/iptables":          Switch,
		"volume/" + Switch:         file,
		"volume/ip6tables":         "../sbin/xtables-nft-multi",
		"copied/ip6tables":         "iptables",
		"copied/iptables-save":     "iptables-save",
		"copied/iptables-restore":  "../sbin/script",
		"copied/ip6tables-restore": "gone",
	} {
		host.Check(t, os.Symlink(target, top+"/"+path))
	}
	running, err := dir.IDAt(file)
	host.Check(t, err)
	for _, test := range []struct {
		path, want string // the directory, "" if it is not known
		laid       bool
	}{
		{"sbin/iptables", "sbin", true},
		{"sbin/ip6tables", "alternatives/../sbin", true},
		{"volume/iptables", "volume", true},
		{"copied/iptables", "copied", false},
		{"copied/ip6tables", "copied", false},
		{"volume/ip6tables", "", false},
		{"copied/iptables-save", "", false},
		{"copied/iptables-restore", "", false},
		{"copied/ip6tables-restore", "", false},
	} {
		got := Locate(top+"/"+test.path, running)
		switch {
		case test.want == "" && got.Dir != nil:
			t.Errorf("%s: %s", test.path, got.Dir.Path())
		case test.want == "":
		case got.Dir == nil:
			t.Errorf("%s: not known", test.path)
		case got.Dir.Path() != top+"/"+test.want || got.Laid != test.laid:
			t.Errorf("%s: %s, laid: %v", test.path, got.Dir.Path(), got.Laid)
		}
	}
	t.Chdir(top + "/copied")
	if got := Locate("iptables", running); got.Dir != nil {
		t.Errorf("the working directory counts: %s", got.Dir.Path())
	}
	if got := Locate("./iptables", running); got.Dir == nil || got.Dir.Path() != top+"/copied/." {
		t.Errorf("a relative path: %+v", got)
	}
}

// The switch contains a bare name if the program is beside it, otherwise its path.
func TestContentFor(t *testing.T) {
	here := t.TempDir()
	host.Check(t, os.WriteFile(here+"/xtables-nft-multi", nil, 0o755))
	d, err := dir.Open(here)
	host.Check(t, err)
	defer d.Close()
	if got := ContentFor(d, evidence.NFT); got != "xtables-nft-multi" {
		t.Errorf("got %q", got)
	}
	host.Check(t, os.WriteFile(here+"/iptables-nft", nil, 0o755))
	host.Check(t, os.Remove(here+"/xtables-nft-multi"))
	if got := ContentFor(d, evidence.NFT); got != "" {
		t.Errorf("a program of one command alone: got %q", got)
	}
}
