// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// fakeHost is a small file system in a temporary directory, and the wrapper at work in it.
type fakeHost struct {
	tb   testing.TB
	root string
	n    Names

	kubelet detect.Mode // the backend in which kubelet has made its chains
}

const (
	wrapperFile   = "/usr/sbin/iptables-wrapper"
	nftProgram    = "/usr/sbin/xtables-nft-multi"
	legacyProgram = "/usr/sbin/xtables-legacy-multi"
	life          = "7.4711.0badcafe"
)

// What every wrapper has: it is an ELF file with the marker in it.
var wrapperContent = "\x7fELF" + programs.Marker()

// memoryPath is where a user's memory is: root's in the container's own /dev, others' in /dev/shm.
func memoryPath(uid int) string {
	return programs.Join(memory.Dirs(uid)[0], fmt.Sprintf("%s.%d.%s", self.WrapperName, uid, life))
}

// remember puts a memory in its place.
func (h *fakeHost) remember(mode detect.Mode, what string) {
	h.link(strings.TrimSpace(string(mode)+" "+what), memoryPath(h.n.Self.UID))
}

func chosenBy(mode detect.Mode) detect.Memory {
	return detect.Memory{Mode: mode, Reason: detect.Override, Because: "somebody selected it"}
}

// newHost returns a host with both programs and a wrapper, and no names yet. The caller may remove it before the
// test ends.
func newHost(tb testing.TB) *fakeHost {
	tb.Helper()
	// A directory in memory, where there is one: some tests make thousands of hosts.
	root, err := os.MkdirTemp("/dev/shm", "links")
	if err != nil {
		root = tb.TempDir()
	}
	h := &fakeHost{tb: tb, root: root}
	for _, dir := range []string{"usr/sbin", "usr/bin", "etc/alternatives", "dev/shm", "run"} {
		h.check(os.MkdirAll(filepath.Join(h.root, dir), 0o755))
	}
	h.write(nftProgram, "nft")
	h.write(legacyProgram, "legacy")
	h.write(wrapperFile, wrapperContent)
	h.link("pts/ptmx", "/dev/ptmx") // the container's own /dev
	t, err := tree.Open(h.root)
	h.check(err)
	h.n = Names{
		Tree: t, Self: self.Process{Called: "/usr/sbin/iptables", Executable: wrapperFile, UID: os.Geteuid()},
		Container: memory.Container{
			OwnNetns: detect.Yes,
			OwnRoot:  detect.Yes,
			Life:     memory.Life{Netns: "7", Start: "4711", Boot: "0badcafe"},
		},
	}
	return h
}

func (h *fakeHost) remove() {
	h.check(h.n.Tree.Close()) // thousands of them would be open before the next garbage collection
	h.check(os.RemoveAll(h.root))
}

func (h *fakeHost) check(err error) {
	h.tb.Helper()
	if err != nil {
		h.tb.Fatal(err)
	}
}

func (h *fakeHost) real(path string) string { return filepath.Join(h.root, path) }

func (h *fakeHost) write(path, content string) {
	h.tb.Helper()
	h.check(os.WriteFile(h.real(path), []byte(content), 0o755))
}

// link makes a symlink, in place of whatever is there.
func (h *fakeHost) link(target, path string) {
	h.tb.Helper()
	_ = os.Remove(h.real(path))
	h.check(os.Symlink(target, h.real(path)))
}

// leads returns where a name leads: "wrapper", "nft", "legacy", or what is wrong with it.
func (h *fakeHost) leads(name string) string {
	c, err := h.n.Tree.Follow("/usr/sbin/" + name)
	if err != nil {
		return err.Error()
	}
	content, err := os.ReadFile(h.real(c.End))
	switch {
	case err != nil:
		return err.Error()
	case string(content) == wrapperContent:
		return "wrapper"
	default:
		return string(content)
	}
}

// memory returns what the container remembers.
func (h *fakeHost) memory() detect.Mode {
	n := h.n
	n.Tree.Step = nil
	return n.Memory().Mode()
}

// stored returns the backend that the next call will run: the switch's, else the memory's.
func (h *fakeHost) stored() detect.Mode {
	mode := detect.Mode(h.leads("iptables"))
	if programs.IsMode(mode) {
		return mode
	}
	return h.memory()
}

// wrong returns what must never be: a name that is broken, two backends, a memory that contradicts the switch, a
// wrapper that is gone.
func (h *fakeHost) wrong() string {
	backend := ""
	for _, name := range programs.Names() {
		switch leads := h.leads(name); leads {
		case "wrapper":
		case "nft", "legacy":
			if backend != "" && backend != leads {
				return fmt.Sprintf("%s points to %s, another name to %s", name, leads, backend)
			}
			backend = leads
		default:
			return name + ": " + leads
		}
	}
	if backend != "" && h.leads(self.WrapperName) != "wrapper" {
		return "the wrapper is gone: " + h.leads(self.WrapperName)
	}
	return ""
}

// contradiction returns how the memory contradicts the switch. kubelet's chains replace a memory without the lock,
// so a call that is killed then, or still under way, may leave one.
func (h *fakeHost) contradiction() string {
	remembered := h.memory()
	leads := h.all()
	if remembered != "" && programs.IsMode(detect.Mode(leads)) && string(remembered) != leads {
		return fmt.Sprintf("the names point to %s, and the memory says %s", leads, remembered)
	}
	return ""
}

// all returns where the names lead: one word if they agree.
func (h *fakeHost) all() string {
	all := []string{}
	for _, name := range programs.Names() {
		if leads := h.leads(name); len(all) == 0 || all[0] != leads {
			all = append(all, leads)
		}
	}
	return strings.Join(all, " and ")
}

// litter lists temporary names that were left behind.
func (h *fakeHost) litter() (found []string) {
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives", "/dev/shm", "/run"} {
		matches, err := filepath.Glob(h.real(dir) + "/.*")
		h.check(err)
		found = append(found, matches...)
	}
	return found
}

// call plays a wrapped call whose detection comes to an answer, up to execve.
func (h *fakeHost) call(n Names, d Decision) Stored {
	stored := h.store(n, d)
	stored.execve()
	return stored
}

// store plays it up to the moment before execve, with the lock held.
func (h *fakeHost) store(n Names, d Decision) Stored {
	m := n.Memory()
	_ = n.Tree.Pause(asks, "")
	if h.kubelet != "" {
		d.Result = kubelet(h.kubelet).Result
	}
	if m.Mode() != "" && !d.Reason.Kubelet() {
		return Stored{Mode: m.Mode(), Unmoved: errRemembered} // row "remembered"
	}
	program, err := n.Find(programs.Dir(n.Self.Called), d.Mode, "iptables")
	if err != nil {
		return Stored{Unmoved: err}
	}
	d.Program = program
	return n.Store(d, &m)
}
