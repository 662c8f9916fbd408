// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A name that goes through another one to the switch keeps its words, whatever is done to the switch.
func TestThroughAnotherName(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("iptables", "/usr/sbin/iptables-save")
	h.link(self.WrapperName, "/usr/sbin/ip6tables") // so that there is something to bring into the layout
	_, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	target, _ := h.n.Tree.Readlink("/usr/sbin/iptables-save")
	if err != nil || h.all() != "nft" || target != "iptables" {
		t.Errorf("got %v, the names point to %s, iptables-save to %q", err, h.all(), target)
	}
}

// The switch is one by whatever path of its directory it is reached.
func TestSwitchByAnotherPath(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.check(os.Symlink("usr/sbin", h.real("/sbin")))
	h.link("/sbin/"+Switch, "/usr/sbin/iptables")
	status := h.n.Look("/usr/sbin")
	if !status[0].Switched {
		t.Errorf("got %+v", status[0])
	}
	stored := h.call(h.n, kubelet(detect.NFT))
	target, _ := h.n.Tree.Readlink("/usr/sbin/iptables")
	if stored.Unmoved != nil || h.all() != "nft" || target != "/sbin/"+Switch {
		t.Errorf("got %+v, the names point to %s, iptables to %q", stored, h.all(), target)
	}
}

// Of two switches on the way, the last one is moved: the first one is another directory's, and follows.
func TestTwoSwitches(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.check(os.MkdirAll(h.real("/opt/sbin"), 0o755))
	h.link("/usr/sbin/"+Switch, "/opt/sbin/"+Switch)
	for _, name := range programs.Names() {
		h.link(Switch, "/opt/sbin/"+name)
	}
	before := h.links("/opt/sbin")
	h.n.Self.Called = "/opt/sbin/iptables"
	stored := h.call(h.n, kubelet(detect.NFT))
	if stored.Unmoved != nil || h.all() != "nft" || h.links("/opt/sbin") != before {
		t.Errorf("got %+v, the names point to %s, in /opt/sbin: %s", stored, h.all(), h.links("/opt/sbin"))
	}
}

// What the switch led to is gone, whatever it was called.
func TestBrokenSwitch(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("gone", "/usr/sbin/"+Switch)
	_, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if err != nil || h.all() != "nft" {
		t.Errorf("select: got %v, the names point to %s", err, h.all())
	}
	h.link("gone", "/usr/sbin/"+Switch)
	_, err = h.n.Reset("/usr/sbin")
	if err != nil || h.all() != "wrapper" {
		t.Errorf("reset: got %v, the names point to %s", err, h.all())
	}
}

// The command leads elsewhere by now, or to the wrapper without the switch. The call runs what it has decided, and does
// not move a switch that the command no longer goes through.
func TestLeadsElsewhereMeanwhile(t *testing.T) {
	for _, target := range []string{"/usr/bin/busybox", self.WrapperName} {
		h := newHost(t)
		installed(h)
		h.write("/usr/bin/busybox", "mine")
		n := at(h.n, "lock", "", func() error {
			h.link(target, "/usr/sbin/iptables")
			return nil
		})
		stored := h.call(n, kubelet(detect.NFT))
		other := h.leads("iptables-save")
		if stored.Mode != detect.NFT || !errors.Is(stored.Unmoved, errElsewhere) || other != "wrapper" {
			t.Errorf("to %s: got %+v, iptables-save points to %s", target, stored, other)
		}
		h.remove()
	}
}

// A name leads to a program of an iptables that had but one backend. Reset brings that one back too, and a guess needs
// it at the wrapper.
func TestProgramWithoutBackend(t *testing.T) {
	for doc, change := range map[string]func(n Names) error{
		"reset": func(n Names) error {
			_, err := n.Reset("/usr/sbin")
			return err
		},
		"select --guess": func(n Names) error {
			_, err := n.Select("/usr/sbin", detect.Memory{Mode: detect.NFT, Reason: detect.Default}, true)
			return err
		},
	} {
		h := newHost(t)
		installed(h)
		h.write("/usr/sbin/xtables-multi", "iptables 1.4")
		h.link("xtables-multi", "/usr/sbin/ip6tables")
		if err := change(h.n); err != nil || h.all() != "wrapper" {
			t.Errorf("%s: got %v, the names point to %s", doc, err, h.all())
		}
		h.remove()
	}
}

// Reset makes no names.
func TestResetMakesNoNames(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.check(os.Remove(h.real("/usr/sbin/ip6tables-save")))
	h.remember(detect.NFT, "default guess "+life)
	before := h.links("/usr/sbin")
	_, err := h.n.Reset("/usr/sbin")
	if !errors.Is(err, unix.ENOENT) || h.links("/usr/sbin") != before || h.memory() != detect.NFT {
		t.Errorf("got %v, the memory says %q: %s", err, h.memory(), h.links("/usr/sbin"))
	}
}

// Where root's memory outranks the user's, reset changes nothing, not even for a moment.
func TestResetBelowRoots(t *testing.T) {
	if os.Geteuid() != 0 {
		host.Cannot(t, "make a memory of root's: not root")
	}
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
	h.n.Self.UID = 0
	h.remember(detect.NFT, "default guess "+life)
	n := h.n
	n.Self.UID = 1000
	n.Tree.Step = func(op, path string) error {
		if op == "rename" || op == "unlink" {
			t.Errorf("%s %s", op, path)
		}
		return nil
	}
	_, err := n.Reset("/usr/sbin")
	if !errors.Is(err, memory.ErrRoots) || h.all() != "nft" || h.memory() != detect.NFT {
		t.Errorf("got %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
	}
}

// A wrapper whose own name is a link to a command in /etc/alternatives would be lost if that were moved.
func TestWrapperThroughAlternatives(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	h.check(os.Rename(h.real(wrapperFile), h.real("/usr/sbin/wrapper-1.0")))
	h.n.Self.Executable = "/usr/sbin/wrapper-1.0"
	alternatives(h, "/usr/sbin/wrapper-1.0")
	h.link("/etc/alternatives/iptables", wrapperFile)
	stored := h.call(h.n, kubelet(detect.NFT))
	if !errors.Is(stored.Unmoved, errThrough) || h.all() != "wrapper" || h.leads(self.WrapperName) != "wrapper" {
		t.Errorf("got %+v, the names point to %s, the wrapper to %s", stored, h.all(), h.leads(self.WrapperName))
	}
}

// A wrapper whose own name is a link to the switch cannot be what the switch points to.
func TestWrapperThroughSwitch(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	h.check(os.Rename(h.real(wrapperFile), h.real("/usr/sbin/wrapper-1.0")))
	h.n.Self.Executable = "/usr/sbin/wrapper-1.0"
	installed(h)
	h.link("wrapper-1.0", "/usr/sbin/"+Switch)
	h.link(Switch, wrapperFile)
	h.link("xtables-nft-multi", "/usr/sbin/ip6tables")
	_, err := h.n.Reset("/usr/sbin")
	if err != nil || h.all() != "wrapper" || h.leads(self.WrapperName) != "wrapper" {
		t.Errorf("got %v, the names point to %s, the wrapper to %s", err, h.all(), h.leads(self.WrapperName))
	}
}

// The switch does without a memory, where there is no place for one. Without the switch, both reasons are reported.
func TestSelectWithoutPlaces(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	withoutMemory(h)
	selected, err := h.n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if err != nil || selected.Memory != "" || h.all() != "nft" {
		t.Errorf("got %+v, %v, the names point to %s", selected, err, h.all())
	}
	_, err = h.n.Reset("/usr/sbin")
	h.check(err)
	n := at(h.n, "rename", Switch, func() error { return unix.ENOSPC })
	_, err = n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if !errors.Is(err, unix.ENOSPC) || h.all() != "wrapper" {
		t.Errorf("no switch either: got %v, the names point to %s", err, h.all())
	}
	unlock, err := h.n.Tree.TryLock("/usr/sbin")
	h.check(err)
	defer unlock()
	n.Tree.Step = func(string, string) error { return nil } // it does not wait long
	_, err = n.Select("/usr/sbin", chosenBy(detect.NFT), false)
	if !errors.Is(err, tree.ErrBusy) {
		t.Errorf("the lock is held: got %v", err)
	}
}

// What fails half-way is put back, but no link of the user's own content is made again: it would be root's.
func TestPutsBackProgramsOnly(t *testing.T) {
	const forged = "legacy kubelet-hint certain " + life
	for before, want := range map[string]string{
		"xtables-legacy-multi": "xtables-legacy-multi",
		forged:                 self.WrapperName,
	} {
		h := newHost(t)
		installed(h)
		h.link("xtables-legacy-multi", "/usr/sbin/"+forged)
		h.link(before, "/usr/sbin/"+Switch)
		h.link("xtables-nft-multi", "/usr/sbin/ip6tables")
		n := at(h.n, "rename", "/ip6tables", func() error { return unix.ENOSPC })
		_, err := n.Reset("/usr/sbin")
		got, readErr := h.n.Tree.Readlink("/usr/sbin/" + Switch)
		if !errors.Is(err, unix.ENOSPC) || readErr != nil || got != want {
			t.Errorf("from %q: got %q, %v, %v", before, got, err, readErr)
		}
		h.remove()
	}
}
