// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What cannot be reset changes nothing: neither the switch nor the memory.
func TestReset(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	for _, test := range []struct {
		doc, content   string // of the switch
		readOnly       bool   // the directory
		readOnlyMemory bool
		empty          bool // the memory
		noWrapper      bool // beside the switch
		wrapper        string
		wrong          error
		fails          bool
		want           string
	}{
		{doc: "both", content: "xtables-nft-multi", want: Wrapper},
		{doc: "the memory only", content: Wrapper, want: Wrapper},
		{doc: "no switch", content: ""},
		{doc: "at the wrapper, read-only", content: Wrapper, readOnly: true, want: Wrapper},
		{
			doc: "nothing to do, all read-only", content: Wrapper, readOnly: true, readOnlyMemory: true, empty: true,
			want: Wrapper,
		},
		{
			doc: "the switch is read-only", content: "xtables-nft-multi", readOnly: true,
			wrong: unix.EROFS, want: "xtables-nft-multi",
		},
		{
			doc: "the memory is read-only", content: "xtables-nft-multi", readOnlyMemory: true,
			wrong: unix.EROFS, want: "xtables-nft-multi",
		},
		{doc: "nothing is remembered, read-only", content: "xtables-nft-multi", readOnlyMemory: true, empty: true,
			want: Wrapper},
		{doc: "not the wrapper's", content: "/bin/true", wrong: ErrForeign, want: "/bin/true"},
		{
			doc: "the wrapper is elsewhere", content: "xtables-nft-multi", noWrapper: true,
			wrapper: "/opt/iptables-wrapper", want: "/opt/iptables-wrapper",
		},
		{
			doc: "the wrapper is elsewhere, and has another name", content: "xtables-nft-multi", noWrapper: true,
			wrapper: "/opt/wrapper", fails: true, want: "xtables-nft-multi",
		},
	} {
		directory, dev := t.TempDir(), t.TempDir()
		if !test.noWrapper {
			grow(t, directory, "iptables-wrapper")
		}
		if test.content != "" {
			grow(t, directory, "iptables-current -> "+test.content)
		}
		if !test.empty {
			host.Check(t, memory.In(opened(t, dev)).Set(selectedNFT))
		}
		before := remembers(t, dev)
		x := Directory{Dir: opened(t, directory), Memory: memory.In(opened(t, dev)), Wrapper: test.wrapper}
		if test.readOnly {
			x.Dir = opened(t, readOnly(t, directory))
		}
		if test.readOnlyMemory {
			x.Memory = memory.In(opened(t, readOnly(t, dev)))
		}
		err := x.Reset()
		failed := test.fails || test.wrong != nil
		if test.wrong != nil && !errors.Is(err, test.wrong) || (err != nil) != failed {
			t.Errorf("%s: got %v", test.doc, err)
		}
		want := ""
		if failed {
			want = before
		}
		content, _ := os.Readlink(directory + "/iptables-current")
		if after := remembers(t, dev); content != test.want || after != want {
			t.Errorf("%s: the switch is at %q, %q is remembered", test.doc, content, after)
		}
	}
}

// Another process has the lock, and releases it before the third try. Nothing is looked at before.
func TestSelectAndResetWait(t *testing.T) {
	directory := t.TempDir()
	grow(t, directory, laidTree(Wrapper)...)
	for _, test := range []struct {
		doc string
		do  func(x Directory) error
	}{
		{"select", func(x Directory) error { return x.Select(selectedNFT, false) }},
		{"reset", Directory.Reset},
	} {
		lock, err := Open(directory)
		host.Check(t, err)
		host.Check(t, lock.Lock(0))
		x := Directory{Dir: opened(t, directory), Running: idOf(t, directory+"/iptables-wrapper")}
		n := 0
		x.Dir.Step = func(operation, name string) {
			switch {
			case operation == "lock":
				n++
				if n == 3 {
					lock.Close()
				}
			case n < 3:
				t.Errorf("%s: %s %s without the lock", test.doc, operation, name)
			}
		}
		host.Check(t, test.do(x))
		x.Dir.Unlock()
	}
}
