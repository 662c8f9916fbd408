// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// An administrator fills a volume for another container, or names a directory without a wrapper beside its switch. The
// programs are those of the machine.
func TestVolume(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	all := func(content string) string {
		return lines("ip6tables -> iptables-current", "ip6tables-restore -> iptables-current",
			"ip6tables-save -> iptables-current", "iptables -> iptables-current", "iptables-current -> "+content,
			"iptables-restore -> iptables-current", "iptables-save -> iptables-current")
	}
	grow(t, "/usr/sbin", "iptables-wrapper")
	guess := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default}
	for _, test := range []struct {
		doc, wrapper string
		tree         []string
		unnamed      bool
		guess        bool
		mode         evidence.Mode
		missing      bool // the machine has no such program
		fails        bool
		want         string
	}{
		{doc: "a backend", mode: evidence.NFT, want: all("/usr/sbin/xtables-nft-multi")},
		{doc: "a guess", mode: evidence.NFT, guess: true, want: all("/usr/sbin/iptables-wrapper")},
		{
			doc: "once more", mode: evidence.Legacy, tree: strings.Split(all("/usr/sbin/xtables-nft-multi"), "\n"),
			want: all("/usr/sbin/xtables-legacy-multi"),
		},
		{doc: "nobody named it", mode: evidence.NFT, unnamed: true, fails: true},
		{doc: "the wrapper's file has another name", wrapper: "/opt/wrapper", mode: evidence.NFT, fails: true},
		{doc: "no program", mode: evidence.Legacy, missing: true, fails: true},
	} {
		volume := t.TempDir()
		grow(t, volume, test.tree...)
		if test.missing {
			host.Run(t, "sh", "-c", "rm /usr/sbin/*"+string(test.mode)+"*")
		}
		x := Directory{Dir: opened(t, volume), Running: idOf(t, "/usr/sbin/iptables-wrapper"), Named: !test.unnamed,
			Wrapper: "/usr/sbin/iptables-wrapper"}
		if test.wrapper != "" {
			x.Wrapper = test.wrapper
		}
		decision := evidence.Decision{Mode: test.mode, Reason: evidence.Selected, Conclusive: true}
		if test.guess {
			decision = guess
		}
		err := x.Select(decision, test.guess)
		if got := list(t, volume, x.Running); got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %v\n%s", test.doc, err, got)
		}
	}
}

// A file beside the switch that cannot be executed is not the program, though it has its name.
func TestProgramElsewhere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	directory := t.TempDir()
	grow(t, directory, "xtables-nft-multi")
	host.Check(t, os.Chmod(directory+"/xtables-nft-multi", 0o644))
	if got := ContentFor(opened(t, directory), evidence.NFT); got != "/usr/sbin/xtables-nft-multi" {
		t.Errorf("got %q", got)
	}
	if got := ContentFor(opened(t, "/usr/sbin/../sbin"), evidence.NFT); got != "xtables-nft-multi" {
		t.Errorf("by another path: got %q", got)
	}
}

// A path is shortened to a name only if the name is that file.
func TestLinkTo(t *testing.T) {
	top := t.TempDir()
	grow(t, top, "here/", "here/iptables-wrapper", "there/", "there/iptables-wrapper", "there/other", "link -> here")
	here := opened(t, top+"/here")
	for path, want := range map[string]string{
		top + "/here/iptables-wrapper":  "iptables-wrapper",
		top + "/link/iptables-wrapper":  "iptables-wrapper",
		top + "/there/iptables-wrapper": top + "/there/iptables-wrapper",
		top + "/there/other":            top + "/there/other",
	} {
		if got := linkTo(here, path); got != want {
			t.Errorf("%s: got %s", path, got)
		}
	}
}
