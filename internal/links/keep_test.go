// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"cmp"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// execve releases the lock, as execve(2) would.
func (k Kept) execve() {
	if k.undo != nil {
		unix.Close(k.lock)
	}
}

func answer(m detect.Mode, why detect.Reason, conclusive bool) Answer {
	return Answer{Result: detect.Result{Mode: m, Reason: why, Conclusive: conclusive}}
}

func conclusive(m detect.Mode) Answer { return answer(m, detect.RuleCount, true) }
func kubelet(m detect.Mode) Answer    { return answer(m, detect.KubeletHint, true) }
func reading(m detect.Mode) Answer    { return answer(m, detect.Default, false) }

func guess(m detect.Mode) Answer {
	a := reading(m)
	a.Adds = true
	return a
}

// A conclusive answer repoints the six names at once, in every layout that points to the wrapper, and leaves nothing behind.
func TestKeep(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			layout.lay(h)
			if kept := h.call(h.w, conclusive(detect.Legacy)); kept.Why != nil || kept.Mode != detect.Legacy {
				t.Fatalf("got %+v", kept)
			}
			if got := h.all(); got != "legacy" {
				t.Errorf("the names point to %s", got)
			}
			if wrong := h.wrong(); wrong != "" {
				t.Error(wrong)
			}
			if h.memory() != detect.Legacy {
				t.Errorf("the memory says %q", h.memory())
			}
			if litter := h.litter(); len(litter) > 0 {
				t.Errorf("left behind: %v", litter)
			}
			if _, err := h.w.Reset("/usr/sbin"); err != nil || h.all() != "wrapper" || h.memory() != "" {
				t.Errorf("reset: %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
			}
		})
	}
}

// What is not proven, or not about the container, is not kept.
func TestNotKept(t *testing.T) {
	for _, test := range []struct {
		doc    string
		answer Answer
		change func(h *fakeHost)
		memory detect.Mode
		why    error
		runs   detect.Mode // "" for the answer's
	}{
		{"a guess of a reading call", reading(detect.NFT), nil, "", errGuess, ""},
		{"a guess of a call that adds something", guess(detect.NFT), nil, detect.NFT, errGuess, ""},
		{"another network namespace", conclusive(detect.NFT), func(h *fakeHost) { h.w.container.OwnNetns = detect.No }, "", errForeign, ""},
		{"an unknown network namespace", conclusive(detect.NFT), func(h *fakeHost) { h.w.container.OwnNetns = detect.Unknown }, "", errForeign, ""},
		{"another root", conclusive(detect.NFT), func(h *fakeHost) { h.w.container.OwnRoot = detect.No }, "", errForeign, ""},
		{"an unknown root", guess(detect.NFT), func(h *fakeHost) { h.w.container.OwnRoot = detect.Unknown }, "", errForeign, ""},
		{"set-user-ID", conclusive(detect.NFT), func(h *fakeHost) { h.w.setID, h.w.secure = true, true }, "", ErrPrivileged, ""},
		{"file capabilities", conclusive(detect.NFT), func(h *fakeHost) { h.w.secure = true }, detect.NFT, ErrPrivileged, ""},
		{"a single program", conclusive(detect.NFT), func(h *fakeHost) {
			h.check(os.Rename(h.real(nftProgram), h.real("/usr/sbin/iptables-nft")))
		}, detect.NFT, errSingle, ""},
		{"the directory is locked", conclusive(detect.NFT), func(h *fakeHost) {
			_, err := h.w.Lock("/usr/sbin")
			h.check(err)
		}, detect.NFT, ErrBusy, ""},
		{"the command now points elsewhere", conclusive(detect.NFT), func(h *fakeHost) {
			h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		}, "", errElsewhere, detect.Legacy},
		{"a program beside the link that was called", conclusive(detect.NFT), func(h *fakeHost) {
			h.check(os.Mkdir(h.real("/home"), 0o755))
			h.link("/usr/sbin/iptables", "/home/iptables")
			h.write("/home/xtables-nft-multi", "mine")
			h.w.Called = "/home/iptables"
		}, detect.NFT, errElsewhere, ""},
		{"a user's file is in the switch's place", conclusive(detect.NFT), func(h *fakeHost) {
			linked(h)
			h.check(os.Remove(h.real("/usr/sbin/" + Switch)))
			h.write("/usr/sbin/"+Switch, "mine")
		}, detect.NFT, unix.EEXIST, ""},
		{"the program goes through a name", conclusive(detect.NFT), func(h *fakeHost) {
			linked(h)
			h.link("xtables-legacy-multi", "/usr/sbin/iptables-save")
			h.link("iptables-save", nftProgram)
		}, detect.NFT, programs.ErrRecursion, ""},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			if test.change != nil {
				test.change(h)
			}
			before := h.all()
			if kept := h.call(h.w, test.answer); !errors.Is(kept.Why, test.why) || kept.Mode != cmp.Or(test.runs, test.answer.Mode) {
				t.Errorf("got %v, %v, want %v", kept.Mode, kept.Why, test.why)
			}
			if got := h.all(); got != before {
				t.Errorf("the names point to %s, before to %s", got, before)
			}
			h.w.setID = false
			if got := h.memory(); got != test.memory {
				t.Errorf("the memory says %q, want %q", got, test.memory)
			}
		})
	}
}

// A program that exists and cannot be executed is not missing.
func TestOnlyInstalled(t *testing.T) {
	missing := func(h *fakeHost, path string) { h.check(os.Remove(h.real(path))) }
	unusable := func(h *fakeHost, path string) { h.check(os.Chmod(h.real(path), 0o644)) }
	wrapper := func(h *fakeHost, path string) { h.write(path, programs.Marker()) }
	good := func(*fakeHost, string) {}
	for i, test := range []struct {
		nft, legacy func(*fakeHost, string)
		want        detect.Mode
	}{
		{good, good, ""}, {missing, missing, ""}, {good, missing, detect.NFT}, {missing, good, detect.Legacy},
		{unusable, good, ""}, {good, wrapper, ""}, {unusable, missing, ""},
	} {
		h := newHost(t)
		test.nft(h, nftProgram)
		test.legacy(h, legacyProgram)
		paths, errs, only := h.w.FindBoth("/usr/sbin", "iptables")
		if only != test.want {
			t.Errorf("%d: got %q, want %q: %v, %v", i, only, test.want, paths, errs)
		}
		h.remove()
	}
}

// Names that point to something else than a wrapper stay as they are.
func TestOtherNamesStay(t *testing.T) {
	for _, target := range []string{"/usr/bin/busybox", legacyProgram} {
		h := newHost(t)
		linked(h)
		h.write("/usr/bin/busybox", "mine")
		h.link(target, "/usr/sbin/iptables-save")
		if kept := h.call(h.w, conclusive(detect.NFT)); kept.Why != nil || h.leads("iptables-restore") != "nft" {
			t.Errorf("%s: got %+v, iptables-restore is %s", target, kept, h.leads("iptables-restore"))
		}
		if got, err := h.w.Readlink("/usr/sbin/iptables-save"); got != target || err != nil {
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
	h.link("gone", Temporary("/usr/sbin/"+Switch, "new"))
	if kept := h.call(h.w, conclusive(detect.NFT)); kept.Why != nil || len(h.litter()) > 0 {
		t.Errorf("got %v, left behind: %v", kept.Why, h.litter())
	}
	h.check(os.Mkdir(h.real(Temporary("/usr/sbin/"+Switch, "new")), 0o755))
	if _, err := h.w.Reset("/usr/sbin"); err != nil || h.all() != "wrapper" || len(h.litter()) != 1 {
		t.Errorf("got %v, the names point to %s, left: %v", err, h.all(), h.litter())
	}
}

// What a killed process left, where the name that it was about to move points to the switch through another name by now.
func TestStaleTemporaryOfAName(t *testing.T) {
	for _, again := range []func(w Wrapper) error{
		func(w Wrapper) error { _, _, err := w.Select("/usr/sbin", detect.NFT); return err },
		func(w Wrapper) error { _, err := w.Reset("/usr/sbin"); return err },
	} {
		h := newHost(t)
		defer h.remove()
		installed(h)
		h.check(os.Remove(h.real("/usr/sbin/iptables-save")))
		h.link("iptables", "/usr/sbin/iptables-save")
		h.link(Switch, Temporary("/usr/sbin/iptables-save", "new"))
		if err := again(h.w); err != nil || len(h.litter()) > 0 {
			t.Errorf("got %v, left behind: %v", err, h.litter())
		}
	}
}

// A failed rename leaves no temporary link.
func TestFailedRename(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	w := h.w
	w.step = func(op, _ string) error {
		if op == "rename" {
			return unix.EIO
		}
		return nil
	}
	if kept := h.call(w, conclusive(detect.NFT)); !errors.Is(kept.Why, unix.EIO) || kept.Mode != detect.NFT || len(h.litter()) > 0 {
		t.Errorf("got %+v, left behind: %v", kept, h.litter())
	}
}

// A program that turns out not to run is not kept.
func TestUndo(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	a := conclusive(detect.NFT)
	a.Program = nftProgram
	kept := h.w.Keep(a, h.w.Container(), h.w.Memory(h.w.Container()))
	if h.all() != "nft" {
		t.Fatalf("got %+v, the names point to %s", kept, h.all())
	}
	if kept.Undo(); h.all() != "wrapper" {
		t.Errorf("the names point to %s", h.all())
	}
	if kept := h.call(h.w, kubelet(detect.NFT)); kept.Why != nil {
		t.Errorf("the lock is still held: %v", kept.Why)
	}
}
