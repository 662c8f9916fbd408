// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// laidTree is a directory with both programs, in which the switch is laid and contains something.
func laidTree(content string) []string {
	return []string{
		"iptables-wrapper", "xtables-nft-multi", "xtables-legacy-multi", "iptables-current -> " + content,
		"iptables -> iptables-current", "iptables-save -> iptables-current", "iptables-restore -> iptables-current",
		"ip6tables -> iptables-current", "ip6tables-save -> iptables-current", "ip6tables-restore -> iptables-current",
	}
}

// without is a tree without some entries.
func without(tree []string, entries ...string) (rest []string) {
	for _, entry := range tree {
		name, _, _ := strings.Cut(entry, " -> ")
		if !strings.Contains(" "+strings.Join(entries, " ")+" ", " "+name+" ") {
			rest = append(rest, entry)
		}
	}
	return rest
}

// remembers returns the memory in a directory: the backend, the reason and the certainty; "" if there is none.
func remembers(t *testing.T, directory string) string {
	t.Helper()
	content, err := os.Readlink(directory + "/" + memory.Name)
	if err != nil {
		return ""
	}
	words := strings.Fields(content)
	return strings.Join(words[:min(3, len(words))], " ")
}

var selectedNFT = evidence.Decision{Mode: evidence.NFT, Reason: evidence.Selected, Conclusive: true}

// What a select does to the switch and to the memory, where each may be read-only, or there is no memory. What it
// refuses changes nothing.
func TestSelect(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory, which is root's; run it as root")
	}
	const (
		readOnlyMemory = "read-only"
		noMemory       = "none"
	)
	legacy := evidence.Decision{Mode: evidence.Legacy, Reason: evidence.Default}
	guess := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default}
	atWrapper, atNFT, atLegacy := laidTree(Wrapper), laidTree("xtables-nft-multi"), laidTree("xtables-legacy-multi")
	single := append(without(atWrapper, "xtables-nft-multi"), "iptables-nft")
	for _, test := range []struct {
		doc      string
		tree     []string
		readOnly bool // the directory
		memory   string
		before   *evidence.Decision // in the memory
		guess    bool
		kubelet  evidence.Mode
		wrong    error
		content  string // of the switch
		after    string // in the memory
	}{
		{doc: "all can be written", tree: atWrapper, content: "xtables-nft-multi", after: "nft selected certain"},
		{
			doc: "it outranks what is remembered", tree: atLegacy, before: &legacy,
			content: "xtables-nft-multi", after: "nft selected certain",
		},
		{
			doc: "no memory", tree: atLegacy, memory: noMemory, content: "xtables-nft-multi",
		},
		{
			doc: "the switch cannot be moved", tree: atWrapper, readOnly: true, content: Wrapper,
			after: "nft selected certain",
		},
		{
			doc: "the switch is there already", tree: atNFT, readOnly: true, memory: noMemory,
			content: "xtables-nft-multi",
		},
		{
			doc: "the switch is there already, and it is remembered", tree: atNFT, readOnly: true,
			kubelet: evidence.Legacy, content: "xtables-nft-multi", after: "nft selected certain",
		},
		{
			doc: "the switch cannot be moved, and there is no memory", tree: atWrapper, readOnly: true,
			memory: noMemory, wrong: ErrNowhere, content: Wrapper,
		},
		{
			doc: "nothing can be written", tree: atWrapper, readOnly: true, memory: readOnlyMemory,
			wrong: unix.EROFS, content: Wrapper,
		},
		{
			doc: "the switch cannot be moved from the other program", tree: atLegacy, readOnly: true,
			wrong: unix.EROFS, content: "xtables-legacy-multi",
		},
		{
			doc: "kubelet's chains outrank the memory", tree: atWrapper, readOnly: true, kubelet: evidence.Legacy,
			before: &legacy, wrong: ErrNowhere, content: Wrapper, after: "legacy default guess",
		},
		{
			doc: "kubelet says the same", tree: atWrapper, readOnly: true, kubelet: evidence.NFT,
			content: Wrapper, after: "nft selected certain",
		},
		{
			doc: "the switch outranks kubelet's chains", tree: atWrapper, kubelet: evidence.Legacy,
			content: "xtables-nft-multi", after: "nft selected certain",
		},
		{
			doc: "no multi-call program", tree: single, content: Wrapper, after: "nft selected certain",
		},
		{
			doc: "no multi-call program, and no memory", tree: single, memory: noMemory, wrong: ErrNowhere,
			content: Wrapper,
		},
		{doc: "a guess", tree: atWrapper, guess: true, content: Wrapper, after: "nft default guess"},
		{
			doc: "a guess, the switch cannot be moved", tree: atWrapper, readOnly: true, guess: true, content: Wrapper,
			after: "nft default guess",
		},
		{
			doc: "a guess, no memory", tree: atWrapper, memory: noMemory, guess: true, wrong: ErrNowhere,
			content: Wrapper,
		},
		{
			doc: "a guess, a read-only memory", tree: atWrapper, memory: readOnlyMemory, guess: true, wrong: ErrNowhere,
			content: Wrapper,
		},
		{
			doc: "a guess, another process was faster", tree: atWrapper, before: &legacy, guess: true,
			wrong: ErrNowhere, content: Wrapper, after: "legacy default guess",
		},
		{
			doc: "a guess, the switch is at the other program", tree: atLegacy, guess: true, wrong: ErrNowhere,
			content: "xtables-legacy-multi",
		},
		{
			doc: "one of the names is a program", wrong: ErrNotWrapped, content: Wrapper,
			tree: append(without(atWrapper, "ip6tables-save"), "ip6tables-save -> xtables-nft-multi"),
		},
		{
			doc: "one leads through another directory's switch", wrong: ErrNotWrapped, content: Wrapper,
			tree: append(without(atWrapper, "ip6tables"), "ip6tables -> other/iptables-current", "other/",
				"other/iptables-current -> ../iptables-wrapper"),
		},
		{
			doc: "one is broken", wrong: ErrNotWrapped, content: Wrapper,
			tree: append(without(atWrapper, "ip6tables"), "ip6tables -> gone"),
		},
		{doc: "one is missing", tree: without(atWrapper, "ip6tables"), content: "xtables-nft-multi",
			after: "nft selected certain"},
		{doc: "the switch is not the wrapper's", tree: laidTree("xtables"), wrong: ErrForeign, content: "xtables"},
		{
			doc: "the switch is a file", wrong: ErrForeign,
			tree: append(without(atWrapper, "iptables-current"), "iptables-current"),
		},
	} {
		directory, dev := t.TempDir(), t.TempDir()
		grow(t, directory, test.tree...)
		running := idOf(t, directory+"/iptables-wrapper")
		if test.before != nil {
			host.Check(t, memory.In(opened(t, dev)).Set(*test.before))
		}
		x := Directory{Dir: opened(t, directory), Running: running, Wrapper: directory + "/iptables-wrapper",
			Kubelet: test.kubelet}
		if test.readOnly {
			x.Dir = opened(t, readOnly(t, directory))
		}
		switch test.memory {
		case "":
			x.Memory = memory.In(opened(t, dev))
		case readOnlyMemory:
			x.Memory = memory.In(opened(t, readOnly(t, dev)))
		}
		tree := list(t, directory, running)
		decision := selectedNFT
		if test.guess {
			decision = guess
		}
		err := x.Select(decision, test.guess)
		if !errors.Is(err, test.wrong) {
			t.Errorf("%s: got %v", test.doc, err)
		}
		content, _ := os.Readlink(directory + "/iptables-current")
		if after := remembers(t, dev); content != test.content || after != test.after {
			t.Errorf("%s: the switch is at %q, %q is remembered", test.doc, content, after)
		}
		if after := list(t, directory, running); test.wrong != nil && after != tree {
			t.Errorf("%s: got\n%s", test.doc, after)
		}
		x.Dir.Unlock()
	}
}
