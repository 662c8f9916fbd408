// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

var (
	proven = evidence.Decision{
		Mode: evidence.Legacy, Reason: evidence.KubeletHint, Conclusive: true, Because: "a chain of kubelet is there",
	}
	guessed = evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default}
)

// A link says nothing unless it is one that format makes, about this network namespace.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		doc, content string
		want         evidence.Decision
	}{
		{"certain", "legacy kubelet-hint certain 7 a chain of kubelet is there", proven},
		{"a guess, without a word", "nft default guess 7 ", guessed},
		{"another network namespace", "nft default guess 8 ", evidence.Decision{}},
		{"another version", "nft default certainly 7 ", evidence.Decision{}},
		{"no backend", "iptables default guess 7 ", evidence.Decision{}},
		{"too short", "nft default guess 7", evidence.Decision{}},
		{"empty", "", evidence.Decision{}},
	} {
		got := parse(test.content, "7")
		if got != test.want {
			t.Errorf("%s: got %+v", test.doc, got)
		}
		if got.Mode != "" && format(got, "7") != test.content {
			t.Errorf("%s: made again, it is %q", test.doc, format(got, "7"))
		}
	}
}

// Make keeps what is there, and replaces what says nothing. Set replaces both. Forget removes it, and is content without.
func TestMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	d, err := dir.Open(t.TempDir())
	host.Check(t, err)
	defer d.Close()
	m := In(d)
	for _, test := range []struct {
		doc, before string
		want        evidence.Decision
	}{
		{"nothing there", "", guessed},
		{"something there", format(proven, m.netns), proven},
		{"another network namespace", format(proven, "1"), guessed},
		{"no memory", "iptables-wrapper", guessed},
	} {
		host.Check(t, m.Forget())
		if test.before != "" {
			host.Check(t, d.Symlink(test.before, Name))
		}
		got, err := m.Make(guessed)
		if err != nil || got != test.want || m.Read() != test.want {
			t.Errorf("%s: got %+v, %v, then %+v", test.doc, got, err, m.Read())
		}
		host.Check(t, m.Set(proven))
		if m.Read() != proven {
			t.Errorf("%s: then %+v", test.doc, m.Read())
		}
	}
	host.Check(t, m.Set(proven))
	host.Check(t, os.Lchown(m.Path(), 1, 1))
	if got := m.Read(); got != (evidence.Decision{}) || !m.Exists() {
		t.Errorf("another user's says %+v", got)
	}
}

// A link that is gone when it is read is made again: what another call has made since stays.
func TestGoneMeanwhile(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	d, err := dir.Open(t.TempDir())
	host.Check(t, err)
	defer d.Close()
	m := In(d)
	host.Check(t, m.Set(proven))
	d.Step = func(operation, _ string) {
		if operation != "lstat" {
			return
		}
		d.Step = func(string, string) { // before the next one
			d.Step = nil
			host.Check(t, os.Symlink(format(proven, m.netns), m.Path()))
		}
		host.Check(t, os.Remove(m.Path()))
	}
	got, err := m.Make(guessed)
	if err != nil || got != proven || m.Read() != proven {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Where nothing can be remembered, nothing is, and the error says so.
func TestNowhere(t *testing.T) {
	m := Memory{}
	_, err := m.Make(guessed)
	if !errors.Is(err, unix.ENOENT) || !errors.Is(m.Set(guessed), unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	if m.Read() != (evidence.Decision{}) || m.Exists() || m.Path() != "" || m.Forget() != nil {
		t.Error("it is somewhere")
	}
}
