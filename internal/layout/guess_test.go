// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// A guess after which nothing was written makes room for what is found now, or for what another call has guessed since.
func TestVoid(t *testing.T) {
	count := conclusive(detect.NFT)
	count.Void = true
	count.Program = nftProgram
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.remember(detect.Legacy, "default guess "+life)
	m := h.n.Memory()
	stored := h.n.Store(count, &m)
	if stored.Unmoved != nil || stored.Mode != detect.NFT || h.all() != "nft" || h.memory() != detect.NFT {
		t.Errorf("got %+v, the names point to %s, the memory says %q", stored, h.all(), h.memory())
	}
	stored.execve()

	again := guess(detect.NFT)
	again.Void = true
	installed(h)
	h.remember(detect.Legacy, "default guess "+life)
	n := at(h.n, "symlink", life, func() error {
		h.remember(detect.Legacy, "default guess "+life)
		return nil
	})
	m = n.Memory()
	stored = n.Store(again, &m)
	if stored.Mode != detect.Legacy || h.memory() != detect.Legacy {
		t.Errorf("another call was faster: got %+v, the memory says %q", stored, h.memory())
	}
}

// Reset removes what a faster call remembers, and that call then moves the switch. A guess that is remembered only now
// follows the switch, and the memory does too. If another reset comes before it has the lock, the guess moves nothing.
func TestGuessOvertaken(t *testing.T) {
	for _, test := range []struct {
		doc        string
		again      bool // another reset
		switched   string
		runs       detect.Mode
		remembered detect.Mode
		unmoved    error
	}{
		{"overtaken", false, "legacy", detect.Legacy, detect.Legacy, errElsewhere},
		{"and reset", true, "wrapper", detect.NFT, "", errGuess},
	} {
		h := newHost(t)
		installed(h)
		locks := 0
		n := h.n
		n.Tree.Step = func(op, path string) error {
			switch {
			case op == "symlink" && strings.HasSuffix(path, life):
				h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
			case op == "lock":
				locks++
			}
			if op == "lock" && test.again {
				h.link(self.WrapperName, "/usr/sbin/"+Switch)
				h.check(os.Remove(h.real(memoryPath(h.n.Self.UID))))
			}
			return nil
		}
		stored := h.call(n, guess(detect.NFT))
		if locks != 1 || stored.Mode != test.runs || !errors.Is(stored.Unmoved, test.unmoved) {
			t.Errorf("%s: %d locks, got %+v", test.doc, locks, stored)
		}
		if h.all() != test.switched || h.memory() != test.remembered {
			t.Errorf("%s: the names point to %s, the memory says %q", test.doc, h.all(), h.memory())
		}
		h.remove()
	}
}

// A memory that cannot be replaced does not keep a call from running what kubelet's chains say.
func TestMemoryCannotBeReplaced(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.remember(detect.NFT, "default guess "+life)
	n := h.n
	n.Tree.Step = func(op, path string) error {
		if strings.HasPrefix(path, "/dev/") && op != "read" {
			return unix.EROFS
		}
		return nil
	}
	stored := h.call(n, kubelet(detect.Legacy))
	if stored.Mode != detect.Legacy || !errors.Is(stored.Unmoved, errRemembered) || h.all() != "wrapper" {
		t.Errorf("got %+v, the names point to %s", stored, h.all())
	}
}

// A guess in what may be this container leaves a link, which binds nobody. Elsewhere there is none.
func TestUnbound(t *testing.T) {
	for _, test := range []struct {
		netns, root detect.Answer
		link        bool
	}{
		{detect.Unknown, detect.Yes, true},
		{detect.Yes, detect.Unknown, true},
		{detect.No, detect.Yes, false},
		{detect.Unknown, detect.No, false},
	} {
		h := newHost(t)
		installed(h)
		h.n.Container.OwnNetns = test.netns
		h.n.Container.OwnRoot = test.root
		stored := h.call(h.n, guess(detect.NFT))
		link := h.n.Tree.IsLink(memoryPath(h.n.Self.UID))
		if !errors.Is(stored.Unmoved, errNotOwn) || link != test.link || h.memory() != "" {
			t.Errorf("%+v: got %+v, a link: %v, the memory says %q", test, stored, link, h.memory())
		}
		h.remove()
	}
}

// A switch that no name uses says nothing of the backend that runs, wherever a rollback has left it.
func TestUnusedSwitch(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	linked(h)
	h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
	stored := h.call(h.n, kubelet(detect.NFT))
	if stored.Unmoved != nil || stored.Mode != detect.NFT || h.all() != "nft" {
		t.Errorf("got %+v, the names point to %s", stored, h.all())
	}
}

// Where a call cannot remember what kubelet's chains say, it runs what another call has found out since: for the same
// backend, but another reason.
func TestMemoryChangesItsReason(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.remember(detect.NFT, "default guess "+life)
	n := h.n
	n.Tree.Step = func(op, path string) error {
		if op != "symlink" || !strings.HasPrefix(path, "/dev/") {
			return nil
		}
		h.remember(detect.NFT, "kubelet-canary certain "+life)
		return unix.ENOSPC
	}
	stored := h.call(n, kubelet(detect.Legacy))
	if stored.Mode != detect.NFT || !errors.Is(stored.Unmoved, errRemembered) || h.all() != "wrapper" {
		t.Errorf("got %+v, the names point to %s", stored, h.all())
	}
}

// A call that finds the switch at odds with kubelet's word waits for as long as a move of the switch takes on a busy
// machine, and then goes on without the lock.
func TestPatience(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	defer unlock()
	h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
	begin := time.Now()
	stored := h.call(h.n, kubelet(detect.NFT))
	waited := time.Since(begin)
	if !errors.Is(stored.Unmoved, tree.ErrBusy) || waited < 100*time.Millisecond {
		t.Errorf("got %+v after %v", stored, waited)
	}
}
