// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// at has something happen when an operation comes to a step: "lock", or "rename" of a link that ends in this.
func at(n Names, op, suffix string, happen func() error) Names {
	n.Tree.Step = func(at, path string) error {
		if at == op && strings.HasSuffix(path, suffix) {
			return happen()
		}
		return nil
	}
	return n
}

// What the memory says anew is run, whenever that happens: between the first look and the lock, or between the last
// look under the lock and the move of the switch.
func TestMemoryChangesMeanwhile(t *testing.T) {
	for _, test := range []struct {
		doc    string
		op     string // when it changes
		suffix string
		memory string
		runs   detect.Mode
		switched,
		remembered detect.Mode
	}{
		{
			doc:        "kubelet's word before the lock",
			op:         "lock",
			memory:     "nft kubelet-hint certain " + life,
			runs:       detect.NFT,
			remembered: detect.NFT,
		},
		{
			doc:        "the same backend, by a guess, before the lock",
			op:         "lock",
			memory:     "legacy default guess " + life,
			runs:       detect.Legacy,
			remembered: detect.Legacy,
		},
		{
			doc:        "kubelet's word before the move",
			op:         "rename",
			suffix:     Switch,
			memory:     "nft kubelet-canary certain " + life,
			runs:       detect.NFT,
			remembered: detect.NFT,
		},
		{
			doc:        "another call's guess before the move: the switch is the truth",
			op:         "rename",
			suffix:     Switch,
			memory:     "nft default guess " + life,
			runs:       detect.Legacy,
			switched:   detect.Legacy,
			remembered: detect.Legacy,
		},
		{
			doc:        "a guess by kubelet's chains before the move: the switch is the truth",
			op:         "rename",
			suffix:     Switch,
			memory:     "nft kubelet-hint guess " + life,
			runs:       detect.Legacy,
			switched:   detect.Legacy,
			remembered: detect.Legacy,
		},
		{
			doc:        "kubelet's word for the same backend before the move",
			op:         "rename",
			suffix:     Switch,
			memory:     "legacy kubelet-hint certain " + life,
			runs:       detect.Legacy,
			switched:   detect.Legacy,
			remembered: detect.Legacy,
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			happened := false
			n := at(h.n, test.op, test.suffix, func() error {
				if !happened {
					h.remember(detect.Mode(strings.Fields(test.memory)[0]), strings.SplitN(test.memory, " ", 2)[1])
				}
				happened = true
				return nil
			})
			stored := h.call(n, conclusive(detect.Legacy))
			if !happened || stored.Mode != test.runs || (stored.Unmoved == nil) != (test.switched != "") {
				t.Errorf("runs %s, unmoved: %v", stored.Mode, stored.Unmoved)
			}
			leads := "wrapper"
			if test.switched != "" {
				leads = string(test.switched)
			}
			if h.all() != leads || h.memory() != test.remembered || len(h.litter()) > 0 {
				t.Errorf("the names point to %s, the memory says %q, left behind: %v", h.all(), h.memory(), h.litter())
			}
			remembered := h.n.Memory().Remembered()
			if strings.Contains(test.memory, "kubelet-hint certain") && !remembered.Reason.Kubelet() {
				t.Errorf("the memory has lost kubelet's reason: %+v", remembered)
			}
			again := h.call(h.n, kubelet(test.remembered))
			if again.Unmoved != nil && test.switched == "" {
				t.Errorf("the lock is still held: %v", again.Unmoved)
			}
		})
	}
}

// Where the switch cannot go back to the wrapper, it is the truth, also against kubelet's word.
func TestCannotGoBack(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	renames := 0
	n := at(h.n, "rename", Switch, func() error {
		renames++
		if renames > 1 {
			return unix.ENOSPC
		}
		h.remember(detect.NFT, "kubelet-hint certain "+life)
		return nil
	})
	stored := h.call(n, conclusive(detect.Legacy))
	if stored.Mode != detect.Legacy || stored.Unmoved != nil || h.all() != "legacy" || h.memory() != detect.Legacy {
		t.Errorf("got %+v, the names point to %s, the memory says %q", stored, h.all(), h.memory())
	}
}

// The call that finds the lock held looks once more where it was called, and what is remembered.
func TestBusyLock(t *testing.T) {
	for _, test := range []struct {
		doc    string
		happen func(h *fakeHost)
		runs   detect.Mode
	}{
		{
			doc:    "nothing has changed",
			happen: func(*fakeHost) {},
			runs:   detect.Legacy,
		},
		{
			doc:    "kubelet's word",
			happen: func(h *fakeHost) { h.remember(detect.NFT, "kubelet-hint certain "+life) },
			runs:   detect.NFT,
		},
		{
			doc: "the switch has moved, as kubelet says",
			happen: func(h *fakeHost) {
				h.remember(detect.NFT, "kubelet-hint certain "+life)
				h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
			},
			runs: detect.NFT,
		},
		{
			doc:    "the switch has moved, and its holder does not go on",
			happen: func(h *fakeHost) { h.link("xtables-nft-multi", "/usr/sbin/"+Switch) },
			runs:   detect.NFT,
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			happened := false
			n := at(h.n, "lock", "", func() error {
				if !happened {
					_, err := h.n.Tree.TryLock("/usr/sbin")
					h.check(err)
					test.happen(h)
				}
				happened = true
				return nil
			})
			stored := h.call(n, conclusive(detect.Legacy))
			if stored.Mode != test.runs || !errors.Is(stored.Unmoved, tree.ErrBusy) {
				t.Errorf("runs %s, unmoved: %v", stored.Mode, stored.Unmoved)
			}
		})
	}
}

// A call that finds the switch at odds with kubelet's word waits for the holder of the lock, who may point it back
// at the wrapper.
func TestWaitForTheHolder(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	attempts := 0
	n := at(h.n, "lock", "", func() error {
		attempts++
		switch attempts {
		case 1:
			h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		case 3:
			h.link("iptables-wrapper", "/usr/sbin/"+Switch)
			unlock()
		}
		return nil
	})
	stored := h.call(n, kubelet(detect.NFT))
	if stored.Mode != detect.NFT || stored.Unmoved != nil || h.all() != "nft" || h.memory() != detect.NFT {
		t.Errorf("got %+v, the names point to %s, the memory says %q", stored, h.all(), h.memory())
	}
}

// The holder has pointed the switch back at the wrapper, and keeps the lock for longer than a call waits. Where the
// switch led before the wait no longer counts.
func TestHolderKeepsTheLock(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	defer unlock()
	attempts := 0
	n := at(h.n, "lock", "", func() error {
		attempts++
		switch attempts {
		case 1:
			h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		case 3:
			h.link(self.WrapperName, "/usr/sbin/"+Switch)
		}
		return nil
	})
	stored := h.call(n, kubelet(detect.NFT))
	if stored.Mode != detect.NFT || !errors.Is(stored.Unmoved, tree.ErrBusy) || h.memory() != detect.NFT {
		t.Errorf("got %+v, the memory says %q", stored, h.memory())
	}
}

// Select and reset wait for whoever holds the lock.
func TestSelectWaits(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	hold := func() {
		unlock, err := h.n.Tree.TryLock("/usr/sbin")
		h.check(err)
		time.AfterFunc(100*time.Millisecond, unlock)
	}
	hold()
	selected, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if err != nil || selected.Unwritable != nil || h.all() != "nft" {
		t.Errorf("select: got %+v, %v, the names point to %s", selected, err, h.all())
	}
	hold()
	_, err = h.n.Reset("/usr/sbin")
	if err != nil || h.all() != "wrapper" {
		t.Errorf("reset: got %v, the names point to %s", err, h.all())
	}
}

// A security module may refuse root the lock. A call goes on; select and reset change the memory, and no link.
func TestLockRefused(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	n := at(h.n, "lock", "", func() error { return unix.EACCES })
	stored := h.call(n, conclusive(detect.NFT))
	if !errors.Is(stored.Unmoved, unix.EACCES) || stored.Mode != detect.NFT || h.memory() != detect.NFT {
		t.Errorf("a call: got %+v, the memory says %q", stored, h.memory())
	}
	selected, err := n.Select("/usr/sbin", chosenBy(detect.Legacy), false)
	refused := errors.Is(selected.Unwritable, unix.EACCES)
	if err != nil || !refused || h.all() != "wrapper" || h.memory() != detect.Legacy {
		t.Errorf("select: got %+v, %v, the names point to %s, the memory says %q", selected, err, h.all(), h.memory())
	}
	_, err = n.Reset("/usr/sbin")
	if err != nil || h.all() != "wrapper" || h.memory() != "" {
		t.Errorf("reset: got %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
	}
	h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
	_, err = n.Reset("/usr/sbin")
	if !errors.Is(err, unix.EACCES) || h.all() != "nft" {
		t.Errorf("reset of a switch: got %v, the names point to %s", err, h.all())
	}
}
