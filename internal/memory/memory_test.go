// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	err := host.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// inDirectory is a memory in a new directory.
func inDirectory(t *testing.T) (m Memory, directory string) {
	t.Helper()
	directory = t.TempDir()
	d, err := dir.Open(directory)
	host.Check(t, err)
	t.Cleanup(d.Close)
	return In(d), directory
}

// needsRoot ends a test of a memory that counts, unless the user is root.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
}

var (
	hint = evidence.Decision{
		Mode: evidence.NFT, Reason: evidence.KubeletHint, Conclusive: true,
		Because: "chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4)",
	}
	guessed = evidence.Decision{Mode: evidence.Legacy, Reason: evidence.Default, Because: "nothing was found"}
)

// One link, as it is on the disk, and what it says.
func TestFormat(t *testing.T) {
	for _, test := range []struct {
		decision evidence.Decision
		content  string
	}{
		{hint, "nft kubelet-hint certain 4026531840 chain KUBE-IPTABLES-HINT is in nft's mangle table (IPv4)"},
		{guessed, "legacy default guess 4026531840 nothing was found"},
		{
			evidence.Decision{Mode: evidence.NFT, Reason: evidence.Selected, Conclusive: true},
			"nft selected certain 4026531840 ",
		},
	} {
		if got := format(test.decision, "4026531840"); got != test.content {
			t.Errorf("got %q, want %q", got, test.content)
		}
		if got := parse(test.content, "4026531840"); got != test.decision {
			t.Errorf("%q: got %+v", test.content, got)
		}
	}
}

// These say nothing, and so are replaced.
var nothing = []struct{ doc, content string }{
	{"empty", "x"},
	{"another network namespace", "nft kubelet-hint certain 1 because"},
	{"a longer number", "nft kubelet-hint certain 40265318400 because"},
	{"no network namespace", "nft kubelet-hint certain  because"},
	{"another backend", "iptables kubelet-hint certain 4026531840 because"},
	{"no backend", " kubelet-hint certain 4026531840 because"},
	{"another word for certain", "nft kubelet-hint sure 4026531840 because"},
	{"no such word", "nft kubelet-hint 4026531840 because of it"},
	{"another version: fewer words", "nft kubelet-hint certain 4026531840"},
	{"another version: more words", "2 nft kubelet-hint certain 4026531840 because"},
	{"a path", "/usr/sbin/xtables-nft-multi"},
}

func TestParseNothing(t *testing.T) {
	for _, test := range nothing {
		got := parse(test.content, "4026531840")
		if got != (evidence.Decision{}) {
			t.Errorf("%s: got %+v", test.doc, got)
		}
	}
}

// What is read is nothing, or can be written and read again.
func FuzzParse(f *testing.F) {
	for _, test := range nothing {
		f.Add(test.content, "4026531840")
	}
	f.Add(format(hint, "4026531840"), "4026531840")
	f.Add(format(guessed, "1"), "1")
	f.Fuzz(func(t *testing.T, content, netns string) {
		d := parse(content, netns)
		if d == (evidence.Decision{}) {
			return
		}
		if !d.Mode.Valid() {
			t.Errorf("backend %q", d.Mode)
		}
		if again := format(d, netns); again != content {
			t.Errorf("got %q", again)
		}
	})
}

// The zero Memory is nowhere.
func TestNowhere(t *testing.T) {
	for doc, m := range map[string]Memory{"the zero Memory": {}, "without a directory": In(nil)} {
		made, makeErr := m.Make(hint)
		if m.Path() != "" || m.Exists() || m.Read() != made || made != (evidence.Decision{}) {
			t.Errorf("%s: it is at %q, %+v", doc, m.Path(), made)
		}
		if !os.IsNotExist(makeErr) || !os.IsNotExist(m.Set(hint)) || m.Forget() != nil {
			t.Errorf("%s: got %v, %v, %v", doc, makeErr, m.Set(hint), m.Forget())
		}
	}
}
