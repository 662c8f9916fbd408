// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// fakeHost is a small file system in a temporary directory, and the wrapper at work in it.
type fakeHost struct {
	tb   testing.TB
	root string
	w    Wrapper
}

const (
	wrapperFile   = "/usr/sbin/iptables-wrapper"
	nftProgram    = "/usr/sbin/xtables-nft-multi"
	legacyProgram = "/usr/sbin/xtables-legacy-multi"
	memoryName    = WrapperName + ".life"
)

// newHost returns a host with both programs and a wrapper, and no names yet. The caller may remove it before the test ends.
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
	h.write(wrapperFile, programs.Marker())
	tree, err := OpenTree(h.root)
	h.check(err)
	h.w = Wrapper{
		Tree: tree, Called: "/usr/sbin/iptables", uid: os.Geteuid(), path: wrapperFile,
		container: &Container{OwnNetns: detect.Yes, OwnRoot: detect.Yes, life: "life"},
	}
	return h
}

func (h *fakeHost) remove() {
	h.w.Close()
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

// layout is a way in which the names point to a wrapper, or to a program of the former layout.
type hostLayout struct {
	name string
	lay  func(h *fakeHost)
}

func eachName(h *fakeHost, names []string, target string) {
	for _, name := range names {
		h.link(target, "/usr/sbin/"+name)
	}
}

func alternatives(h *fakeHost, target string) {
	for _, name := range programs.Names() {
		h.link("/etc/alternatives/"+name, "/usr/sbin/"+name)
		h.link(target, "/etc/alternatives/"+name)
	}
}

func installed(h *fakeHost) {
	h.link(WrapperName, "/usr/sbin/"+Switch)
	eachName(h, programs.Names(), Switch)
}

func linked(h *fakeHost) { eachName(h, programs.Names(), WrapperName) }

// fileUnderName moves the wrapper's file; the others point to it.
func fileUnderName(h *fakeHost, file string, links ...string) {
	h.check(os.Rename(h.real(wrapperFile), h.real("/usr/sbin/"+file)))
	h.link(file, "/usr/sbin/"+links[0])
	eachName(h, links[1:], "iptables")
	h.w.path = "/usr/sbin/" + file
}

// layouts point to the wrapper.
var layouts = []hostLayout{
	{"installed", installed},
	{"alternatives", func(h *fakeHost) {
		h.link(WrapperName, "/usr/sbin/"+Switch)
		alternatives(h, "/usr/sbin/"+Switch)
	}},
	{"links to the wrapper", linked},
	{"alternatives to the wrapper", func(h *fakeHost) { alternatives(h, wrapperFile) }},
	{"a file and links to it", func(h *fakeHost) { fileUnderName(h, "iptables", programs.Names()[1:]...) }},
	{"a file, and the wrapper's name points to it", func(h *fakeHost) {
		fileUnderName(h, "iptables", append(programs.Names()[1:], WrapperName)...)
	}},
	{"the wrapper's name goes through a name", func(h *fakeHost) {
		fileUnderName(h, "wrapper-1.0", append(programs.Names(), WrapperName)...)
	}},
	{"hard links", func(h *fakeHost) {
		for _, name := range programs.Names() {
			h.check(os.Link(h.real(wrapperFile), h.real("/usr/sbin/"+name)))
		}
		h.check(os.Remove(h.real(wrapperFile)))
		h.w.path = "/usr/sbin/iptables"
	}},
	{"links, and a switch that no name uses", func(h *fakeHost) {
		h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		linked(h)
	}},
	{"one name by hand, the others installed", func(h *fakeHost) {
		installed(h)
		h.link(WrapperName, "/usr/sbin/iptables")
	}},
}

// former are layouts whose names point to a program, as the former version left them. Only Select and Reset change them.
var former = []hostLayout{
	{"moved by the former version", func(h *fakeHost) { eachName(h, programs.Names(), "xtables-legacy-multi") }},
	{"alternatives moved by the former version", func(h *fakeHost) { alternatives(h, legacyProgram) }},
	{"moved, and a switch that no name uses", func(h *fakeHost) {
		h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
		eachName(h, programs.Names(), "xtables-legacy-multi")
	}},
}

// leads returns where a name leads: "wrapper", "nft", "legacy", or what is wrong with it.
func (h *fakeHost) leads(name string) string {
	c, err := (Tree{root: h.w.root}).Follow("/usr/sbin/" + name)
	if err != nil {
		return err.Error()
	}
	content, err := os.ReadFile(h.real(c.End))
	switch {
	case err != nil:
		return err.Error()
	case string(content) == programs.Marker():
		return "wrapper"
	default:
		return string(content)
	}
}

// memory returns what the container remembers.
func (h *fakeHost) memory() detect.Mode {
	w := h.w
	w.step = nil
	return w.Memory(w.Container()).Mode()
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
	if memory := h.memory(); memory != "" && backend != "" && string(memory) != backend {
		return fmt.Sprintf("the names point to %s, and the memory says %s", backend, memory)
	}
	if backend != "" && h.leads(WrapperName) != "wrapper" {
		return "the wrapper is gone: " + h.leads(WrapperName)
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
func (h *fakeHost) call(w Wrapper, a Answer) Kept {
	c := w.Container()
	m := w.Memory(c)
	if m.Mode() != "" && !a.kubelet() {
		return Kept{Mode: m.Mode(), Why: errRemembered} // row "remembered"
	}
	program, err := w.FindIn(programs.Dir(w.Called), a.Mode, "iptables")
	if err != nil {
		return Kept{Why: err}
	}
	a.Program = program
	kept := w.Keep(a, c, m)
	kept.execve()
	return kept
}
