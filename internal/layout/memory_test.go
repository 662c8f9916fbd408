// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Only kubelet's chains change what is remembered, and the switch follows the memory.
func TestMemoryOutranksRuleCounts(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	fresh := h.n.Memory()
	if stored := h.call(h.n, guess(detect.NFT)); stored.Mode != detect.NFT {
		t.Fatalf("got %+v", stored)
	}
	if stored := h.call(h.n, conclusive(detect.Legacy)); stored.Mode != detect.NFT || h.all() != "wrapper" {
		t.Errorf("rule count against the memory: got %+v, the names point to %s", stored, h.all())
	}
	// A call that looked before the memory was made follows it, too. The rules that it counted may be those of the
	// guess, so they prove nothing, even if they are of the same backend.
	for _, late := range []Decision{conclusive(detect.Legacy), guess(detect.Legacy), conclusive(detect.NFT)} {
		m := fresh
		late.Program = nftProgram
		if stored := h.n.Store(late, &m); stored.Mode != detect.NFT || stored.Unmoved == nil || h.all() != "wrapper" {
			t.Errorf("a late %s, %s: got %+v, the names point to %s", late.Reason, late.Mode, stored, h.all())
		}
	}
	stored := h.call(h.n, kubelet(detect.Legacy))
	if stored.Mode != detect.Legacy || stored.Unmoved != nil || h.all() != "legacy" ||
		h.memory() != detect.Legacy {
		t.Errorf("kubelet: got %+v, the names point to %s, the memory says %q", stored, h.all(), h.memory())
	}
}

// A certain memory of the same backend does not keep a slower call from moving the switch: the first may have been
// killed.
func TestSameCertainMemory(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	m := h.n.Memory()
	h.remember(detect.NFT, "rule-count certain "+life+" nft has 15 rules")
	d := conclusive(detect.NFT)
	d.Program = nftProgram
	if stored := h.n.Store(d, &m); stored.Unmoved != nil || h.all() != "nft" {
		t.Errorf("got %+v, the names point to %s", stored, h.all())
	}
}

// Where no memory can be made, the switch alone says what the first call chose, and a slower one follows it.
func TestFollowTheSwitch(t *testing.T) {
	for _, slow := range []Decision{guess(detect.NFT), conclusive(detect.NFT)} {
		h := newHost(t)
		defer h.remove()
		withoutMemory(h)
		if stored := h.call(h.n, conclusive(detect.Legacy)); stored.Unmoved != nil || h.all() != "legacy" {
			t.Fatalf("got %+v, the names point to %s", stored, h.all())
		}
		if stored := h.call(h.n, slow); stored.Mode != detect.Legacy || stored.Unmoved == nil {
			t.Errorf("%s: got %+v", slow.Reason, stored)
		}
		stored := h.call(h.n, kubelet(detect.NFT))
		if stored.Mode != detect.Legacy || !errors.Is(stored.Unmoved, errElsewhere) {
			t.Errorf("kubelet: got %+v", stored)
		}
	}
}

// Without a memory, a call has seen another one's switch. That one takes it back, because its program does not run, or
// an administrator resets it. The call then moves the switch itself, and runs what it moved it to.
func TestTheSwitchThatWasSeenIsGone(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	withoutMemory(h)
	h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
	n := at(h.n, "lock", "", func() error {
		h.link(self.WrapperName, "/usr/sbin/"+Switch)
		return nil
	})
	stored := h.call(n, conclusive(detect.NFT))
	if stored.Mode != detect.NFT || stored.Unmoved != nil || h.all() != "nft" {
		t.Errorf("got %+v, the names point to %s", stored, h.all())
	}
}

// Who moved the switch writes the memory again; who finds it moved follows it, and so does the memory.
func TestTheSwitchIsTheTruth(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	m := h.n.Memory()
	if stored := h.call(h.n, kubelet(detect.Legacy)); stored.Unmoved != nil {
		t.Fatalf("got %+v", stored)
	}
	d := kubelet(detect.NFT)
	d.Program = nftProgram
	if stored := h.n.Store(d, &m); stored.Mode != detect.Legacy || h.memory() != detect.Legacy || h.all() != "legacy" {
		t.Errorf("got %+v, the names point to %s, the memory says %q", stored, h.all(), h.memory())
	}
}

// A name that somebody linked to the wrapper follows the others, whose switch was moved before.
func TestFollowTheOtherNames(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
	h.link(self.WrapperName, "/usr/sbin/iptables")
	stored := h.call(h.n, kubelet(detect.NFT))
	if stored.Mode != detect.Legacy || h.memory() != detect.Legacy || h.leads("iptables-save") != "legacy" {
		t.Errorf("the other backend: got %+v, the memory says %q", stored, h.memory())
	}
	n := h.n
	n.Tree.Step = func(op, path string) error {
		if op == "rename" && path == "/usr/sbin/iptables" {
			return unix.EROFS // as /etc/alternatives may be
		}
		return nil
	}
	stored = h.call(n, kubelet(detect.Legacy))
	if !errors.Is(stored.Unmoved, unix.EROFS) || h.leads("iptables-save") != "legacy" {
		t.Errorf("a name that cannot: got %+v, the others point to %s", stored, h.leads("iptables-save"))
	}
	if stored := h.call(h.n, kubelet(detect.Legacy)); stored.Unmoved != nil || h.all() != "legacy" {
		t.Errorf("the same: got %+v, the names point to %s", stored, h.all())
	}
	h.link(self.WrapperName, "/usr/sbin/iptables")
	h.link("somebody's", "/usr/sbin/"+Switch)
	n.Tree.Step = func(op, path string) error {
		if op != "read" && op != "ask the kernel" && op != "lock" && !strings.HasPrefix(path, "/dev/") {
			t.Errorf("somebody's switch: %s %q", op, path)
		}
		return nil
	}
	h.check(os.WriteFile(h.real("/usr/sbin/somebody's"), []byte("#!/bin/sh\n"), 0o755))
	h.call(n, kubelet(detect.Legacy))
}

// Select and reset bring back where the switch led, and the memory, if that cannot be changed.
func TestMemoryCannotBeChanged(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	if _, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false); err != nil || h.all() != "nft" {
		t.Fatalf("got %v, the names point to %s", err, h.all())
	}
	n := h.n
	n.Tree.Step = func(op, path string) error {
		if strings.HasPrefix(path, "/dev/") && op != "read" {
			return unix.EIO
		}
		return nil
	}
	for doc, change := range map[string]func() error{
		"select": func() error { _, err := n.Select("/usr/sbin", chosenBy(detect.Legacy), false); return err },
		"reset":  func() error { _, err := n.Reset("/usr/sbin"); return err },
	} {
		if err := change(); !errors.Is(err, unix.EIO) || h.all() != "nft" || h.memory() != detect.NFT {
			t.Errorf("%s: got %v, the names point to %s, the memory says %q", doc, err, h.all(), h.memory())
		}
	}
}

// Where a program runs and nothing is remembered, select makes the memory after it has moved the switch: the other
// way round, one that is killed would leave a memory that contradicts it.
func TestSelectWithoutMemory(t *testing.T) {
	for step := 0; ; step++ {
		h := newHost(t)
		installed(h)
		h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
		stopped := h.stopAt(step, true, func(_ *fakeHost, n Names) {
			_, _ = n.Select("/usr/sbin", chosenBy(detect.Legacy), false)
		})
		if wrong := cmp.Or(h.wrong(), h.contradiction()); wrong != "" || !stopped && h.memory() != detect.Legacy {
			t.Errorf("killed at step %d: %s, the memory says %q", step, wrong, h.memory())
		}
		h.remove()
		if !stopped {
			break
		}
	}
}

// A lock that somebody else holds does not keep kubelet's chains out of the memory.
func TestKubeletNeedsNoLock(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.remember(detect.NFT, "default guess "+life)
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	defer unlock()
	stored := h.call(h.n, kubelet(detect.Legacy))
	if stored.Mode != detect.Legacy || h.memory() != detect.Legacy || h.all() != "wrapper" {
		t.Errorf("got %+v, the memory says %q", stored, h.memory())
	}
	if r := h.n.Memory().Remembered(); r.Reason != detect.KubeletHint || !r.Conclusive {
		t.Errorf("got %+v", r)
	}
	h.n.Tree.Step = func(string, string) error { return nil } // it does not wait long
	// select leaves the switch alone, and makes the memory.
	selected, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if err != nil || selected.Unwritable == nil || selected.Memory != memoryPath(h.n.Self.UID) ||
		h.memory() != detect.NFT {
		t.Errorf("select: got %+v, %v", selected, err)
	}
	if _, err := h.n.Reset("/usr/sbin"); err != nil || h.memory() != "" {
		t.Errorf("reset: %v, the memory says %q", err, h.memory())
	}
}

// Without the lock, no link is changed, not even to what it contains: whoever holds it may be about to move it.
func TestResetNeedsTheLock(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	defer unlock()
	h.n.Tree.Step = func(op, path string) error {
		if op != "lock" && op != "read" {
			t.Errorf("%s %s", op, path)
		}
		return nil
	}
	if _, err := h.n.Reset("/usr/sbin"); !errors.Is(err, tree.ErrBusy) {
		t.Errorf("got %v", err)
	}
}

// Kubelet's word for the backend that is remembered already is remembered in its place.
func TestBetterReason(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.remember(detect.NFT, "rule-count certain "+life+" nft has 15 rules")
	stored := h.call(h.n, kubelet(detect.NFT))
	remembered := h.n.Memory().Remembered()
	if stored.Unmoved != nil || remembered.Reason != detect.KubeletHint || !remembered.Conclusive {
		t.Errorf("got %+v, remembered: %+v", stored, remembered)
	}
}

// What another call moved is remembered as what it is, and not as kubelet's word.
func TestFollowedReason(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	n := at(h.n, "lock", "", func() error {
		h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		return nil
	})
	stored := h.call(n, kubelet(detect.NFT))
	remembered := h.n.Memory().Remembered()
	if stored.Mode != detect.Legacy || remembered.Mode != detect.Legacy || remembered.Reason.Kubelet() {
		t.Errorf("got %+v, remembered: %+v", stored, remembered)
	}
}

// Reset forgets what is in each of the places.
func TestResetTwoMemories(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.remember(detect.NFT, "default guess "+life)
	second := strings.Replace(memoryPath(h.n.Self.UID), "/dev/", "/dev/shm/", 1)
	if h.n.Self.UID != 0 {
		second = strings.Replace(memoryPath(h.n.Self.UID), "/dev/shm/", "/run/", 1)
	}
	h.link("legacy default guess "+life, second)
	_, err := h.n.Reset("/usr/sbin")
	if err != nil || h.memory() != "" || h.n.Tree.IsLink(second) {
		t.Errorf("got %v, the memory says %q, the second one is there: %v", err, h.memory(), h.n.Tree.IsLink(second))
	}
}
