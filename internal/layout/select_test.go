// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// operation is something that changes links, and where the names lead once it has come to its end.
type operation struct {
	name string
	call bool // a wrapped call, which does not run the wrapper in a former layout
	run  func(h *fakeHost, n Names)
	want string
}

var operations = []operation{
	{"a rule count", true, func(h *fakeHost, n Names) { h.call(n, conclusive(detect.NFT)) }, "nft"},
	{"kubelet's word", true, func(h *fakeHost, n Names) { h.call(n, kubelet(detect.NFT)) }, "nft"},
	{"select", false, func(_ *fakeHost, n Names) { _, _ = n.Select("/usr/sbin", chosenBy(detect.NFT), false) }, "nft"},
	{"reset", false, func(_ *fakeHost, n Names) { _, _ = n.Reset("/usr/sbin") }, "wrapper"},
}

// Each operation, in each layout, with and without a memory, is killed before each of its steps, and fails there
// with ENOSPC. Nothing is wrong after any of them, and the operation comes to its end when it is tried again.
func TestKilledAndFailedAtEachStep(t *testing.T) {
	stops := 0
	for i, layout := range layouts {
		for j, o := range operations {
			memories := []detect.Mode{"", detect.Legacy}
			if os.Getenv("TEST_ALL") == "" {
				memories = memories[(i+j)%2:][:1]
			}
			for _, memory := range memories {
				stops += stopEverywhere(t, layout, o, memory)
			}
		}
	}
	t.Logf("%d stops", stops)
	if stops < 600 {
		t.Errorf("only %d stops", stops)
	}
}

func stopEverywhere(t *testing.T, layout hostLayout, o operation, memory detect.Mode) (stops int) {
	t.Helper()
	for _, kill := range []bool{true, false} {
		for step := 0; ; step++ {
			h := newHost(t)
			layout.lay(h)
			if memory != "" {
				h.remember(memory, "rule-count certain "+life)
			}
			stopped := h.stopAt(step, kill, o.run)
			what := fmt.Sprintf("%s, %s, memory %q, kill %v at step %d", layout.name, o.name, memory, kill, step)
			if wrong := cmp.Or(h.wrong(), h.contradiction()); wrong != "" {
				t.Fatalf("%s: %s", what, wrong)
			}
			for _, name := range programs.Names() { // a name that was not brought in joins when it is called
				if !o.call && name != "iptables" {
					continue
				}
				n := h.n
				n.Self.Called = "/usr/sbin/" + name
				o.run(h, n)
			}
			want := o.want
			if o.name == "a rule count" && h.memory() != "" && h.all() == "wrapper" {
				want = "wrapper" // the memory outranks it, and holds without the switch
			}
			if got := h.all(); got != want {
				t.Fatalf("%s, and again: the names point to %s", what, got)
			}
			if wrong := cmp.Or(h.wrong(), h.contradiction()); wrong != "" {
				t.Fatalf("%s, and again: %s", what, wrong)
			}
			h.remove()
			if !stopped {
				break
			}
			stops++
		}
	}
	return stops
}

// stopAt runs an operation that is killed, or fails, once it has taken so many steps. It returns whether there was one
// more.
func (h *fakeHost) stopAt(taken int, kill bool, run func(*fakeHost, Names)) (stopped bool) {
	n := h.n
	step := 0
	n.Tree.Step = func(string, string) error {
		step++
		if step != taken+1 {
			return nil
		}
		stopped = true
		if kill {
			runtime.Goexit()
		}
		return unix.ENOSPC
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(h, n)
	}()
	<-done
	return stopped
}

// Select refuses what it cannot do as a whole, and changes nothing then.
func TestSelectRefuses(t *testing.T) {
	for _, test := range []struct {
		doc    string
		change func(h *fakeHost)
		want   string
	}{
		{"a user's file", func(h *fakeHost) {
			h.check(os.Remove(h.real("/usr/sbin/iptables")))
			h.write("/usr/sbin/iptables", "mine")
		}, "neither a wrapper nor a link"},
		{"a link to something else", func(h *fakeHost) {
			h.write("/usr/bin/busybox", "mine")
			h.link("/usr/bin/busybox", "/usr/sbin/iptables-save")
		}, "neither a wrapper nor part of iptables"},
		{"nothing is installed", former[0].lay, "no wrapper is installed"},
		{"nothing is installed, but alternatives", former[1].lay, "no wrapper is installed"},
		{"nothing is installed, but a switch that no name uses", former[2].lay, "no wrapper is installed"},
		{"a dangling link", func(h *fakeHost) { h.link("nowhere", "/usr/sbin/iptables") }, "broken link"},
		{"a loop", func(h *fakeHost) { h.link("iptables", "/usr/sbin/iptables") }, "too many levels"},
		{"the program is a wrapper", func(h *fakeHost) { h.write(nftProgram, wrapperContent) }, "the wrapper itself"},
		{"the program goes through the switch", func(h *fakeHost) { h.link(Switch, nftProgram) }, "the wrapper itself"},
		{"the program goes through a name that points to the other backend", func(h *fakeHost) {
			h.link("xtables-legacy-multi", "/usr/sbin/iptables-save")
			h.link("iptables-save", nftProgram)
		}, "reached through"},
		{"the wrapper's name goes through a name", func(h *fakeHost) {
			fileUnderName(h, "wrapper-1.0", append(programs.Names(), self.WrapperName)...)
		}, "reached through"},
		{"no program", func(h *fakeHost) { h.check(os.Remove(h.real(nftProgram))) }, "no such program"},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			test.change(h)
			before := h.all()
			_, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if got := h.all(); got != before {
				t.Errorf("the names point to %s, before to %s", got, before)
			}
		})
	}
}

// For a caller with fewer privileges, select and reset change nothing.
func TestSelectIsNotForPrivileged(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.n.Self.Secure = true
	_, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if !errors.Is(err, self.ErrPrivileged) || h.all() != "wrapper" {
		t.Errorf("select: got %v, the names point to %s", err, h.all())
	}
	h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
	if _, err := h.n.Reset("/usr/sbin"); !errors.Is(err, self.ErrPrivileged) || h.all() != "nft" {
		t.Errorf("reset: got %v, the names point to %s", err, h.all())
	}
}

// A directory without names gets them.
func TestSelectMakesNames(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	selected, err := h.n.Select("/usr/sbin", chosenBy(detect.Legacy), false)
	if err != nil || selected.Unwritable != nil || h.all() != "legacy" {
		t.Errorf("got %+v, %v, the names point to %s", selected, err, h.all())
	}
}

// A switch that is in place changes with one rename, and so it does where the memory says the same.
func TestSelectIsOneRename(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.n.Container.OwnNetns = detect.Unknown // an image build: no memory
	if _, err := h.n.Select("/usr/sbin", chosenBy(detect.Legacy), false); err != nil {
		t.Fatal(err)
	}
	renames := 0
	h.n.Tree.Step = func(op, _ string) error {
		if op == "rename" {
			renames++
		}
		return nil
	}
	if _, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false); err != nil || h.all() != "nft" || renames != 1 {
		t.Errorf("got %v, the names point to %s after %d renames", err, h.all(), renames)
	}
	renames = 0
	if _, err := h.n.Reset("/usr/sbin"); err != nil || h.all() != "wrapper" || renames != 1 {
		t.Errorf("reset: got %v, the names point to %s after %d renames", err, h.all(), renames)
	}
}

// Two directories in one container, by calls that only read: the second follows the memory that the first made.
func TestTwoDirectories(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.check(os.MkdirAll(h.real("/usr/local/sbin"), 0o755))
	h.link(wrapperFile, "/usr/local/sbin/"+Switch)
	for _, name := range programs.Names() {
		h.link(Switch, "/usr/local/sbin/"+name)
	}
	fresh := h.n.Memory()
	if stored := h.call(h.n, conclusive(detect.NFT)); stored.Unmoved != nil {
		t.Fatalf("got %+v", stored)
	}
	n := h.n
	n.Self.Called = "/usr/local/sbin/iptables"
	if stored := n.Store(conclusive(detect.Legacy), &fresh); stored.Mode != detect.NFT {
		t.Errorf("got %+v", stored)
	}
}

// What does not run the backend through the memory needs the switch: without the lock, nothing is changed.
func TestSelectNeedsTheSwitch(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	defer unlock()
	n := h.n
	n.Tree.Step = func(string, string) error { return nil } // it does not wait long
	_, err = n.Select("/usr/sbin", chosenBy(detect.Legacy), false)
	if !errors.Is(err, tree.ErrBusy) || h.all() != "nft" || h.memory() != "" {
		t.Errorf("got %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
	}
}

// Where the last step fails, the memory alone makes the names run the backend.
func TestSelectByMemory(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	n := at(h.n, "rename", Switch, func() error { return unix.ENOSPC })
	selected, err := n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if err != nil || !errors.Is(selected.Unwritable, unix.ENOSPC) || h.all() != "wrapper" || h.memory() != detect.NFT {
		t.Errorf("got %+v, %v, the names point to %s, the memory says %q", selected, err, h.all(), h.memory())
	}
}

// The memory says what was selected, also if kubelet's chains have replaced it just before the switch was moved.
func TestSelectHasTheLastWord(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	n := at(h.n, "rename", Switch, func() error {
		h.remember(detect.NFT, "kubelet-hint certain "+life)
		return nil
	})
	_, err := n.Select("/usr/sbin", chosenBy(detect.Legacy), false)
	if err != nil || h.all() != "legacy" || h.memory() != detect.Legacy {
		t.Errorf("got %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
	}
}
