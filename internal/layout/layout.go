// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package layout is the switch: the symlink through which the six names lead to the wrapper, or to a program.
//
//	/usr/sbin/iptables, ip6tables-save, ...  -> iptables-current
//	/usr/sbin/iptables-current               -> iptables-wrapper, xtables-nft-multi or xtables-legacy-multi
//
// One rename(2) of the switch changes all six names at one instant, or none. Its directory is called DIR here. What a
// wrapped call stores in it, and in the container's memory, is keep.go.
package layout

import (
	"iter"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

const (
	// Switch is the name of the switch.
	Switch = "iptables-current"
	// Wrapper is the name of the wrapper's file beside the switch.
	Wrapper = "iptables-wrapper"
)

// mostLinks is how many symlinks the kernel follows (MAXSYMLINKS in linux/namei.h).
const mostLinks = 40

// Place is where a command was called. The zero Place is not known.
type Place struct {
	Command string   // the path by which it was called
	Dir     *dir.Dir // DIR, or where the switch would be laid
	Laid    bool     // the path leads through a switch
	Running dir.ID   // the running file
}

// Locate finds the place of a command that was called by a path, AT_EXECFN.
//
// The path counts if it resolves to the running file, or leads through a switch beside which that is the wrapper: since
// execve(2) another call may have pointed the switch at a program. Otherwise, as for a script that begins with
// "#!/usr/sbin/iptables-restore", the place is not known. Nor is it for a path without a slash: the working directory
// may be anybody's.
func Locate(path string, running dir.ID) Place {
	if !strings.Contains(path, "/") {
		return Place{}
	}
	through := throughSwitch(path)
	if through == "" && leadsTo(path, running) {
		d, err := dir.Open(parent(path))
		if err != nil {
			return Place{}
		}
		return Place{Command: path, Dir: d, Running: running}
	}
	if through == "" {
		through = throughSwitch(path) // another call may have laid it just now
	}
	if through == "" {
		return Place{}
	}
	d, err := dir.Open(through)
	if err != nil {
		return Place{}
	}
	wrapper, err := d.ID(Wrapper)
	if err == nil && wrapper == running || leadsTo(path, running) {
		return Place{Command: path, Dir: d, Laid: true, Running: running}
	}
	d.Close()
	return Place{}
}

// Beside is the absolute directory of the path by which the command was called, "" if that is not known.
func (p Place) Beside() string {
	if p.Dir == nil {
		return ""
	}
	return absolute(parent(p.Command))
}

func leadsTo(path string, file dir.ID) bool {
	id, err := dir.IDAt(path)
	return err == nil && id == file
}

// throughSwitch returns the directory of the switch that a path leads through, "" if there is none on its way. Any link
// counts, those in /etc/alternatives included.
func throughSwitch(path string) string {
	for hop := range Hops(path) {
		if filepath.Base(hop) == Switch {
			return parent(hop)
		}
	}
	return ""
}

// Hops yields a path, and each path to which it leads through symlinks, the last one included.
func Hops(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		buf := make([]byte, unix.PathMax)
		for range mostLinks {
			if !yield(path) {
				return
			}
			n, err := unix.Readlink(path, buf)
			if err != nil {
				return
			}
			target := string(buf[:n])
			if !filepath.IsAbs(target) {
				target = parent(path) + "/" + target
			}
			path = target
		}
	}
}

// parent returns a path without its last element. Unlike filepath.Dir it leaves ".." alone, which means something else
// once a symlink before it is followed.
func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0:
		return "."
	case i == 0:
		return "/"
	default:
		return path[:i]
	}
}

// modeOf returns the backend of the program that a path names, "" if it is none of iptables' own.
func modeOf(path string) evidence.Mode {
	file := filepath.Base(path)
	for _, mode := range evidence.Modes() {
		if file == multiCall(mode) {
			return mode
		}
		for _, name := range exec.Names() {
			if file == strings.Replace(name, "tables", "tables-"+string(mode), 1) {
				return mode
			}
		}
	}
	return ""
}

// storedMode returns the backend that the content of a switch stands for, "" if it is none that the product puts there.
func storedMode(content string) evidence.Mode {
	for _, mode := range evidence.Modes() {
		if filepath.Base(content) == multiCall(mode) {
			return mode
		}
	}
	return ""
}

// isWrapper reports whether the content of a switch is the wrapper.
func isWrapper(content string) bool { return filepath.Base(content) == Wrapper }

// IsOurs reports whether the content of a switch is one that the product puts there.
func IsOurs(content string) bool { return isWrapper(content) || storedMode(content) != "" }

// multiCall is the file name of a backend's multi-call program, which serves all six commands and goes by argv[0].
func multiCall(mode evidence.Mode) string { return "xtables-" + string(mode) + "-multi" }

// Program returns what the switch in a directory has to contain for a backend: the name of the multi-call program if it
// is in that directory, otherwise its path in a standard one; "" if there is none, or if calls run a program of one
// command alone that is in the directory. The directory is not looked at by its path again, which may lead elsewhere by
// now.
func Program(d *dir.Dir, mode evidence.Mode) string {
	multi := multiCall(mode)
	if d.Executable(multi) {
		return multi
	}
	if d.Executable("iptables-" + string(mode)) {
		return ""
	}
	for _, directory := range StandardDirs() {
		path := directory + "/" + multi
		if unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// beside shortens the path of a file in the directory to its name.
func beside(d *dir.Dir, path string) string {
	here, err := d.ID(filepath.Base(path))
	if err != nil || !leadsTo(path, here) {
		return path
	}
	return filepath.Base(path)
}
