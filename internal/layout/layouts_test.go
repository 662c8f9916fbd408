// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// hostLayout is a way in which the names point to a wrapper, or to a program of the former layout.
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
	h.link(self.WrapperName, "/usr/sbin/"+Switch)
	eachName(h, programs.Names(), Switch)
}

// withoutMemory is installed where no memory can be written: others could replace one there.
func withoutMemory(h *fakeHost) {
	installed(h)
	for _, dir := range memory.Dirs(0) {
		h.check(os.Chmod(h.real(dir), 0o777))
	}
}

func linked(h *fakeHost) { eachName(h, programs.Names(), self.WrapperName) }

// fileUnderName gives the wrapper's file another name. The first link points to that, and the others to iptables.
func fileUnderName(h *fakeHost, file string, links ...string) {
	h.check(os.Rename(h.real(wrapperFile), h.real("/usr/sbin/"+file)))
	h.link(file, "/usr/sbin/"+links[0])
	eachName(h, links[1:], "iptables")
	h.n.Self.Executable = "/usr/sbin/" + file
}

// layouts point to the wrapper.
var layouts = []hostLayout{
	{"installed", installed},
	{"alternatives", func(h *fakeHost) {
		h.link(self.WrapperName, "/usr/sbin/"+Switch)
		alternatives(h, "/usr/sbin/"+Switch)
	}},
	{"links to the wrapper", linked},
	{"alternatives to the wrapper", func(h *fakeHost) { alternatives(h, wrapperFile) }},
	{"a file and links to it", func(h *fakeHost) { fileUnderName(h, "iptables", programs.Names()[1:]...) }},
	{"hard links", func(h *fakeHost) {
		for _, name := range programs.Names() {
			h.check(os.Link(h.real(wrapperFile), h.real("/usr/sbin/"+name)))
		}
		h.check(os.Remove(h.real(wrapperFile)))
		h.n.Self.Executable = "/usr/sbin/iptables"
	}},
	{"links, and a switch that no name uses", func(h *fakeHost) {
		h.link("xtables-legacy-multi", "/usr/sbin/"+Switch)
		linked(h)
	}},
	{"one name by hand, the others installed", func(h *fakeHost) {
		installed(h)
		h.link(self.WrapperName, "/usr/sbin/iptables")
	}},
}

// former are layouts whose names lead to a program, as a distribution or the former version leaves them. They are
// nobody's but their owner's.
var former = []hostLayout{
	{"moved by the former version", func(h *fakeHost) { eachName(h, programs.Names(), "xtables-legacy-multi") }},
	{"alternatives moved by the former version", func(h *fakeHost) { alternatives(h, legacyProgram) }},
	{"moved, and a switch that no name uses", func(h *fakeHost) {
		h.link("xtables-nft-multi", "/usr/sbin/"+Switch)
		eachName(h, programs.Names(), "xtables-legacy-multi")
	}},
}
