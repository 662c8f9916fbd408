// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// execve releases the lock, as execve(2) would.
func (s Stored) execve() {
	if s.moved != "" {
		s.release()
	}
}

func answer(m detect.Mode, why detect.Reason, conclusive bool) Decision {
	return Decision{Result: detect.Result{Mode: m, Reason: why, Conclusive: conclusive}}
}

func changing(d Decision) Decision {
	d.Changes = true
	return d
}

func conclusive(m detect.Mode) Decision { return changing(answer(m, detect.RuleCount, true)) }
func kubelet(m detect.Mode) Decision    { return answer(m, detect.KubeletHint, true) }
func reading(m detect.Mode) Decision    { return answer(m, detect.Default, false) }

func guess(m detect.Mode) Decision {
	a := reading(m)
	a.Adds = true
	return a
}

// afterError is a decision that was made although nft could not be asked.
func afterError(d Decision, err error) Decision {
	d.Evidence = []detect.Evidence{{Hint: detect.No, Err: err}}
	return d
}

// A conclusive answer repoints the six names at once, in every layout that points to the wrapper, and leaves
// nothing behind.
func TestStore(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			layout.lay(h)
			if stored := h.call(h.n, conclusive(detect.Legacy)); stored.Unmoved != nil || stored.Mode != detect.Legacy {
				t.Fatalf("got %+v", stored)
			}
			if got := h.all(); got != "legacy" {
				t.Errorf("the names point to %s", got)
			}
			if wrong := cmp.Or(h.wrong(), h.contradiction()); wrong != "" {
				t.Error(wrong)
			}
			if h.memory() != detect.Legacy {
				t.Errorf("the memory says %q", h.memory())
			}
			if litter := h.litter(); len(litter) > 0 {
				t.Errorf("left behind: %v", litter)
			}
			if _, err := h.n.Reset("/usr/sbin"); err != nil || h.all() != "wrapper" || h.memory() != "" {
				t.Errorf("reset: %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
			}
		})
	}
}

// What is not certain, or not about the container, is not stored.
func TestNotStored(t *testing.T) {
	for _, test := range []struct {
		doc    string
		answer Decision
		change func(h *fakeHost)
		memory detect.Mode
		why    error
		runs   detect.Mode // "" for the answer's
	}{
		{"a guess of a reading call", reading(detect.NFT), nil, "", errGuess, ""},
		{"a count of a reading call", answer(detect.NFT, detect.RuleCount, true), nil, "", errReads, ""},
		{"the variable", answer(detect.NFT, detect.Override, false), nil, "", errOneCall, ""},
		{"what is remembered", changing(answer(detect.NFT, detect.Remembered, true)), nil, "", errOneCall, ""},
		{
			doc:    "a guess after a passing error",
			answer: afterError(guess(detect.NFT), unix.ENFILE),
			why:    unix.ENFILE,
		},
		{"a guess of a call that adds something", guess(detect.NFT), nil, detect.NFT, errGuess, ""},
		{
			doc:    "another network namespace",
			answer: conclusive(detect.NFT),
			change: func(h *fakeHost) { h.n.Container.OwnNetns = detect.No },
			why:    errNotOwn,
		},
		{
			doc:    "an unknown network namespace",
			answer: conclusive(detect.NFT),
			change: func(h *fakeHost) { h.n.Container.OwnNetns = detect.Unknown },
			why:    errNotOwn,
		},
		{
			doc:    "another root",
			answer: conclusive(detect.NFT),
			change: func(h *fakeHost) { h.n.Container.OwnRoot = detect.No },
			why:    errNotOwn,
		},
		{
			doc:    "an unknown root",
			answer: guess(detect.NFT),
			change: func(h *fakeHost) { h.n.Container.OwnRoot = detect.Unknown },
			why:    errNotOwn,
		},
		{
			doc:    "set-user-ID",
			answer: conclusive(detect.NFT),
			change: func(h *fakeHost) { h.n.Self.SetID, h.n.Self.Secure = true, true },
			why:    self.ErrPrivileged,
		},
		{
			doc:    "file capabilities",
			answer: conclusive(detect.NFT),
			change: func(h *fakeHost) { h.n.Self.Secure = true },
			memory: detect.NFT,
			why:    self.ErrPrivileged,
		},
		{"a single program", conclusive(detect.NFT), func(h *fakeHost) {
			h.check(os.Rename(h.real(nftProgram), h.real("/usr/sbin/iptables-nft")))
		}, detect.NFT, errSingle, ""},
		{"the directory is locked", conclusive(detect.NFT), func(h *fakeHost) {
			_, err := h.n.Tree.Lock("/usr/sbin")
			h.check(err)
		}, detect.NFT, tree.ErrBusy, ""},
		{"the command now points elsewhere", conclusive(detect.NFT), func(h *fakeHost) {
			h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		}, detect.Legacy, errElsewhere, detect.Legacy},
		{"a program beside the link that was called", conclusive(detect.NFT), func(h *fakeHost) {
			h.check(os.Mkdir(h.real("/home"), 0o755))
			h.link("/usr/sbin/iptables", "/home/iptables")
			h.write("/home/xtables-nft-multi", "mine")
			h.n.Self.Called = "/home/iptables"
		}, detect.NFT, errOther, ""},
		{"a user's file is in the switch's place", conclusive(detect.NFT), func(h *fakeHost) {
			linked(h)
			h.check(os.Remove(h.real("/usr/sbin/" + Switch)))
			h.write("/usr/sbin/"+Switch, "mine")
		}, detect.NFT, ErrForeign, ""},
		{"the program goes through a name", conclusive(detect.NFT), func(h *fakeHost) {
			linked(h)
			h.link("xtables-legacy-multi", "/usr/sbin/iptables-save")
			h.link("iptables-save", nftProgram)
		}, detect.NFT, errThrough, ""},
		{"the wrapper's name goes through a name", conclusive(detect.NFT), func(h *fakeHost) {
			fileUnderName(h, "wrapper-1.0", append(programs.Names(), self.WrapperName)...)
		}, detect.NFT, errThrough, ""},
		{"the wrapper's name is a link to its file under a name", conclusive(detect.NFT), func(h *fakeHost) {
			h.check(os.Remove(h.real("/usr/sbin/iptables")))
			fileUnderName(h, "iptables", append(programs.Names()[1:], self.WrapperName)...)
		}, detect.NFT, errThrough, ""},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			if test.change != nil {
				test.change(h)
			}
			before := h.all()
			stored := h.call(h.n, test.answer)
			if !errors.Is(stored.Unmoved, test.why) || stored.Mode != cmp.Or(test.runs, test.answer.Mode) {
				t.Errorf("got %v, %v, want %v", stored.Mode, stored.Unmoved, test.why)
			}
			if got := h.all(); got != before {
				t.Errorf("the names point to %s, before to %s", got, before)
			}
			h.n.Self.SetID = false
			if got := h.memory(); got != test.memory {
				t.Errorf("the memory says %q, want %q", got, test.memory)
			}
		})
	}
}

// Names that point to something else than a wrapper stay as they are.
func TestOtherNamesStay(t *testing.T) {
	for _, target := range []string{"/usr/bin/busybox", legacyProgram} {
		h := newHost(t)
		linked(h)
		h.write("/usr/bin/busybox", "mine")
		h.link(target, "/usr/sbin/iptables-save")
		stored := h.call(h.n, conclusive(detect.NFT))
		if stored.Unmoved != nil || h.leads("iptables-restore") != "nft" {
			t.Errorf("%s: got %+v, iptables-restore is %s", target, stored, h.leads("iptables-restore"))
		}
		if got, err := h.n.Tree.Readlink("/usr/sbin/iptables-save"); got != target || err != nil {
			t.Errorf("%s: now %q, %v", target, got, err)
		}
		h.remove()
	}
}

// A stale temporary link is removed, and what is not a link is left alone and not in the way.
func TestStaleTemporary(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("gone", tree.Temporary("/usr/sbin/"+Switch, "new"))
	if stored := h.call(h.n, conclusive(detect.NFT)); stored.Unmoved != nil || len(h.litter()) > 0 {
		t.Errorf("got %v, left behind: %v", stored.Unmoved, h.litter())
	}
	h.check(os.Mkdir(h.real(tree.Temporary("/usr/sbin/"+Switch, "new")), 0o755))
	if _, err := h.n.Reset("/usr/sbin"); err != nil || h.all() != "wrapper" || len(h.litter()) != 1 {
		t.Errorf("got %v, the names point to %s, left: %v", err, h.all(), h.litter())
	}
}

// What a killed process left, where the name that it was about to move points to the switch through another name by
// now.
func TestStaleTemporaryOfAName(t *testing.T) {
	for _, again := range []func(n Names) error{
		func(n Names) error { _, err := n.Select("/usr/sbin", chosenBy(detect.NFT), false); return err },
		func(n Names) error { _, err := n.Reset("/usr/sbin"); return err },
	} {
		h := newHost(t)
		defer h.remove()
		installed(h)
		h.check(os.Remove(h.real("/usr/sbin/iptables-save")))
		h.link("iptables", "/usr/sbin/iptables-save")
		h.link(Switch, tree.Temporary("/usr/sbin/iptables-save", "new"))
		if err := again(h.n); err != nil || len(h.litter()) > 0 {
			t.Errorf("got %v, left behind: %v", err, h.litter())
		}
	}
}

// What a killed process left of the switch goes at the next reset, also where nothing has to be repointed.
func TestStaleTemporarySwitch(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("xtables-nft-multi", tree.Temporary("/usr/sbin/"+Switch, "new"))
	_, err := h.n.Reset("/usr/sbin")
	if err != nil || len(h.litter()) > 0 {
		t.Errorf("got %v, left behind: %v", err, h.litter())
	}
}

// A failed rename leaves no temporary link.
func TestFailedRename(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	n := h.n
	n.Tree.Step = func(op, _ string) error {
		if op == "rename" {
			return unix.EIO
		}
		return nil
	}
	stored := h.call(n, conclusive(detect.NFT))
	if !errors.Is(stored.Unmoved, unix.EIO) || stored.Mode != detect.NFT || len(h.litter()) > 0 {
		t.Errorf("got %+v, left behind: %v", stored, h.litter())
	}
}

// A program that turns out not to run is not stored.
func TestUndo(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	a := conclusive(detect.NFT)
	a.Program = nftProgram
	m := h.n.Memory()
	stored := h.n.Store(a, &m)
	if h.all() != "nft" {
		t.Fatalf("got %+v, the names point to %s", stored, h.all())
	}
	h.n.Undo(stored)
	if h.all() != "wrapper" {
		t.Errorf("the names point to %s", h.all())
	}
	if stored := h.call(h.n, kubelet(detect.NFT)); stored.Unmoved != nil {
		t.Errorf("the lock is still held: %v", stored.Unmoved)
	}
}
