// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// The directory of the commands is that of the wrapper, if there is any sign of iptables, else the first standard
// one with a sign.
func TestDir(t *testing.T) {
	for _, test := range []struct {
		files []string
		want  string
	}{
		{nil, "/usr/sbin"},
		{[]string{"/usr/bin/iptables-nft"}, "/usr/bin"},
		{[]string{"/usr/bin/xtables-nft-multi"}, "/usr/bin"},
		{[]string{"/usr/bin/ip6tables-restore"}, "/usr/bin"},
		{[]string{"/usr/bin/iptables", "/usr/local/sbin/iptables-nft"}, "/usr/local/sbin"},
		{[]string{"/usr/bin/iptables-legacy"}, "/usr/sbin"},
		{[]string{"/opt/iptables"}, "/usr/sbin"}, // the running executable is in another tree
	} {
		h := newHost(t)
		for _, program := range []string{nftProgram, legacyProgram} {
			h.check(os.Remove(h.real(program)))
		}
		h.check(os.MkdirAll(h.real("/usr/local/sbin"), 0o755))
		h.check(os.MkdirAll(h.real("/opt"), 0o755))
		h.n.Self.Executable = "/opt/iptables-wrapper"
		for _, file := range test.files {
			h.write(file, "program")
		}
		got, err := h.n.Dir()
		if got != test.want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", test.files, got, err, test.want)
		}
		h.remove()
	}
}

// A name that leads to another directory's is not that directory's business: what is done to one leaves the other's
// links alone.
func TestOtherDirectories(t *testing.T) {
	changes := map[string]func(h *fakeHost){
		"a call": func(h *fakeHost) { h.call(h.n, kubelet(detect.NFT)) },
		"select": func(h *fakeHost) {
			_, err := h.n.Select("/opt/sbin", chosenBy(detect.NFT), false)
			h.check(err)
		},
		"reset": func(h *fakeHost) {
			h.link(nftProgram, "/opt/sbin/iptables-restore")
			_, err := h.n.Reset("/opt/sbin")
			h.check(err)
		},
	}
	for _, system := range layouts[:4] {
		for doc, change := range changes {
			h := newHost(t)
			system.lay(h)
			h.check(os.MkdirAll(h.real("/opt/sbin"), 0o755))
			h.link(wrapperFile, "/opt/sbin/iptables")
			for _, name := range programs.Names()[1:] {
				h.link("/usr/sbin/"+name, "/opt/sbin/"+name)
			}
			h.link("/etc/alternatives/iptables-save", "/opt/sbin/iptables-save")
			if !h.n.Tree.IsLink("/etc/alternatives/iptables-save") {
				h.link(wrapperFile, "/etc/alternatives/iptables-save")
			}
			before := h.links("/usr/sbin") + h.links("/etc/alternatives")
			h.n.Self.Called = "/opt/sbin/iptables"
			change(h)
			target, _ := h.n.Tree.Readlink("/opt/sbin/ip6tables")
			if doc == "a call" && target != "/usr/sbin/ip6tables" {
				t.Errorf("%s: a name that is /usr/sbin's points to %s now", system.name, target)
			}
			after := h.links("/usr/sbin") + h.links("/etc/alternatives")
			if after != before {
				t.Errorf("%s, %s: before\n%s\nafter\n%s", system.name, doc, before, after)
			}
			if wrong := h.wrong(); wrong != "" {
				t.Errorf("%s, %s: %s", system.name, doc, wrong)
			}
			h.remove()
		}
	}
}

// Names that lead to the wrapper without the switch are left as they are by a guess. Where one leads to a program,
// all are brought into the layout.
func TestSelectGuess(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	linked(h)
	before := h.links("/usr/sbin")
	selected, err := h.n.Select("/usr/sbin", detect.Memory{Mode: detect.NFT, Reason: detect.Default}, true)
	if err != nil || selected.Unwritable != nil || h.memory() != detect.NFT || h.links("/usr/sbin") != before {
		t.Errorf("got %+v, %v, the memory says %q, links: %s", selected, err, h.memory(), h.links("/usr/sbin"))
	}
	h.link("xtables-legacy-multi", "/usr/sbin/iptables-save")
	selected, err = h.n.Select("/usr/sbin", detect.Memory{Mode: detect.NFT, Reason: detect.Default}, true)
	if err != nil || selected.Unwritable != nil || h.all() != "wrapper" {
		t.Errorf("got %+v, %v, the names point to %s", selected, err, h.all())
	}
	status := h.n.Look("/usr/sbin")
	if !status[0].Switched {
		t.Errorf("not switched: %+v", status[0])
	}
}

// Where a name runs a program, a guess needs the lock: without it no link is changed, and nothing remembered. Where all
// run the wrapper, it needs none.
func TestSelectGuessNeedsTheLock(t *testing.T) {
	for _, test := range []struct {
		doc        string
		save       string // where iptables-save leads
		want       error
		names      string
		remembered detect.Mode
	}{
		{
			doc:        "all run the wrapper",
			save:       self.WrapperName,
			names:      "wrapper",
			remembered: detect.NFT,
		},
		{
			doc:   "one runs a program",
			save:  "xtables-legacy-multi",
			want:  tree.ErrBusy,
			names: "wrapper and legacy",
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			linked(h)
			h.link(test.save, "/usr/sbin/iptables-save")
			unlock, err := h.n.Tree.TryLock("/usr/sbin")
			h.check(err)
			defer unlock()
			n := h.n
			n.Tree.Step = func(string, string) error { return nil } // it does not wait long
			_, err = n.Select("/usr/sbin", detect.Memory{Mode: detect.NFT, Reason: detect.Default}, true)
			if !errors.Is(err, test.want) || h.all() != test.names || h.memory() != test.remembered {
				t.Errorf("got %v, the names point to %s, the memory says %q", err, h.all(), h.memory())
			}
		})
	}
}

// To remember a guess, the names need the wrapper alone, so programs that the switch cannot point to are no obstacle.
func TestSelectGuessWithoutMultiCall(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	installed(h)
	h.check(os.Rename(h.real(nftProgram), h.real("/usr/sbin/iptables-nft")))
	h.check(os.Remove(h.real("/usr/sbin/ip6tables")))
	selected, err := h.n.Select("/usr/sbin", detect.Memory{Mode: detect.NFT, Reason: detect.Default}, true)
	if err != nil || selected.Unwritable != nil || h.all() != "wrapper" || h.memory() != detect.NFT {
		t.Errorf("got %+v, %v, the names point to %s, the memory says %q", selected, err, h.all(), h.memory())
	}
}

// Of a chain in a directory that others can change, only the first hop is in the directory that was opened: through the
// others, whoever owns what is on the way may make it lead elsewhere.
func TestReplacesNoHop(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	h.check(os.MkdirAll(h.real("/home/sbin"), 0o755))
	h.link("sbin", "/home/slow")
	for doc, test := range map[string]struct {
		dir  string
		hops []string
		want string
	}{
		"the same entry by another path, and then its successor": {
			"/home/sbin", []string{"/home/sbin/iptables", "/home/slow/iptables", nftProgram},
			"/home/sbin/iptables",
		},
		"a link of alternatives": {
			"/usr/sbin", []string{"/usr/sbin/iptables", "/etc/../etc/alternatives/iptables", nftProgram},
			"/etc/alternatives/iptables",
		},
		"another one": {
			"/usr/sbin", []string{"/usr/sbin/iptables", "/etc/alternatives/shadow", nftProgram},
			"/usr/sbin/iptables",
		},
		"a link of alternatives, from elsewhere": {
			"/home/sbin", []string{"/home/sbin/iptables", "/etc/alternatives/iptables", nftProgram},
			"/home/sbin/iptables",
		},
	} {
		got := h.n.linkToReplace(test.dir, test.hops[0], tree.Chain{Hops: test.hops, End: nftProgram})
		if got != test.want {
			t.Errorf("%s: got %q", doc, got)
		}
	}
}

// exchange puts a directory with the same entries in the place of another one, which goes to /usr/before.
func (h *fakeHost) exchange(dir string) {
	h.tb.Helper()
	before := h.real("/usr/before")
	h.check(os.Rename(h.real(dir), before))
	h.check(os.Mkdir(h.real(dir), 0o755))
	entries, err := os.ReadDir(before)
	h.check(err)
	for _, e := range entries {
		from := filepath.Join(before, e.Name())
		to := filepath.Join(h.real(dir), e.Name())
		target, err := os.Readlink(from)
		if err != nil {
			h.check(os.Link(from, to))
			continue
		}
		h.check(os.Symlink(target, to))
	}
}

// What was locked is what is changed, whatever takes the directory's place meanwhile.
func TestDirectoryIsExchanged(t *testing.T) {
	for doc, test := range map[string]struct {
		change   func(n Names) error
		from, to string // where the switch leads
	}{
		"a call": {
			func(n Names) error {
				m := n.Memory()
				d := kubelet(detect.NFT)
				d.Program = nftProgram
				return n.Store(d, &m).Unmoved
			},
			self.WrapperName, "xtables-nft-multi",
		},
		"select": {
			func(n Names) error {
				_, err := n.Select("/usr/sbin", chosenBy(detect.NFT), false)
				return err
			},
			"xtables-legacy-multi", "xtables-nft-multi",
		},
		"reset": {
			func(n Names) error {
				_, err := n.Reset("/usr/sbin")
				return err
			},
			"xtables-legacy-multi", self.WrapperName,
		},
	} {
		t.Run(doc, func(t *testing.T) {
			h := newHost(t)
			defer h.remove()
			installed(h)
			h.link(test.from, "/usr/sbin/"+Switch)
			exchanged := false
			n := at(h.n, "lock", "", func() error {
				if !exchanged {
					h.exchange("/usr/sbin")
				}
				exchanged = true
				return nil
			})
			err := test.change(n)
			was, _ := h.n.Tree.Readlink("/usr/before/" + Switch)
			now, _ := h.n.Tree.Readlink("/usr/sbin/" + Switch)
			if err != nil || was != test.to || now != test.from {
				t.Errorf("got %v, the switch points to %q, that of the other directory to %q", err, was, now)
			}
		})
	}
}

// While a path leads to a standard directory, but others could make it lead elsewhere, nothing in /etc/alternatives is
// pointed there.
func TestAlternativesByOthersPath(t *testing.T) {
	h := newHost(t)
	defer h.remove()
	h.check(os.Mkdir(h.real("/home"), 0o755))
	h.check(os.Chmod(h.real("/home"), 0o777)) // whatever the umask
	h.link("/usr/sbin", "/home/sbin")
	chain := tree.Chain{Hops: []string{"/home/sbin/iptables", "/etc/alternatives/iptables"}, End: nftProgram}
	n, unpin, err := h.n.Pin("/home/sbin")
	h.check(err)
	defer unpin()
	if got := n.linkToReplace("/home/sbin", chain.Hops[0], chain); got != "/home/sbin/iptables" {
		t.Errorf("got %q", got)
	}
}
