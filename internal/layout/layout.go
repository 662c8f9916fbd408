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
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

const (
	// Switch is the name of the switch.
	Switch = "iptables-current"
	// Wrapper is the name of the wrapper's file beside the switch.
	Wrapper = "iptables-wrapper"
)

// ErrForeign means that the name of the switch, or of a command, is taken by a file that is not the wrapper's.
var ErrForeign = errors.New("it is not the wrapper's")

// Place is where a command was called. The zero Place is not known.
type Place struct {
	Command string   // the path by which it was called
	Dir     *dir.Dir // DIR, or where the switch would be laid, by its absolute path
	Laid    bool     // the path leads through a switch
	Running dir.ID   // the running file
}

// Locate finds the place of a command that was called by a path, AT_EXECFN.
//
// The path counts if it resolves to the running file, or leads through a switch beside which the wrapper is the running
// file: since execve(2), another call may have pointed the switch at a program. Otherwise, as for a script that begins
// with "#!/usr/sbin/iptables-restore", the place is not known. Nor is it for a path without a slash: the working
// directory may be anybody's.
func Locate(path string, running dir.ID) Place {
	if !strings.Contains(path, "/") {
		return Place{}
	}
	through := SwitchDir(path)
	resolves := running.IsAt(path)
	if through == "" && !resolves {
		through = SwitchDir(path) // since the first look, another call may have laid and moved a switch
	}
	directory := through
	switch {
	case through == "" && !resolves:
		return Place{}
	case through == "":
		directory = parent(path)
	}
	d, err := Open(directory)
	if err != nil {
		return Place{}
	}
	if !resolves {
		wrapper, err := d.ID(Wrapper)
		if err != nil || wrapper != running {
			d.Close()
			return Place{}
		}
	}
	return Place{Command: path, Dir: d, Laid: through != "", Running: running}
}

// SwitchDir returns the directory of the switch that a path leads through, "" if there is none on its way. Any link on
// the way counts, those in /etc/alternatives included.
func SwitchDir(path string) string {
	for hop := range Hops(path) {
		if filepath.Base(hop) == Switch {
			return parent(hop)
		}
	}
	return ""
}

// Hops yields a path, and each path that it leads to through a symlink, the last one included.
func Hops(path string) iter.Seq[string] {
	const mostLinks = 40 // as many as the kernel follows: MAXSYMLINKS in linux/namei.h
	return func(yield func(string) bool) {
		for range mostLinks {
			if !yield(path) {
				return
			}
			content, err := os.Readlink(path)
			if err != nil {
				return
			}
			if !filepath.IsAbs(content) {
				content = parent(path) + "/" + content
			}
			path = content
		}
	}
}

// parent returns a path without its last element. Unlike filepath.Dir it does not clean the path: ".." means something
// else once a symlink before it is followed.
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

// Content returns the content of the switch in a directory, "" if there is none. The error wraps ErrForeign if
// something else has its name.
func Content(d *dir.Dir) (string, error) {
	content, err := d.Readlink(Switch)
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", nil
	case errors.Is(err, unix.EINVAL), err == nil && !isWrapper(content) && storedMode(content) == "":
		return "", fmt.Errorf("%q: %w", d.Join(Switch), ErrForeign)
	}
	return content, err
}

// Stored returns the backend that the switch in a directory points to, "" if it points to the wrapper, or if there is
// no switch.
func Stored(d *dir.Dir) evidence.Mode {
	content, _ := Content(d)
	return storedMode(content)
}

// storedMode returns the backend that the content of a switch stands for, "" if it is the wrapper.
func storedMode(content string) evidence.Mode {
	for _, mode := range evidence.Modes() {
		if filepath.Base(content) == iptables.MultiCall(mode) {
			return mode
		}
	}
	return ""
}

// isWrapper reports whether the content of a switch is the wrapper.
func isWrapper(content string) bool { return filepath.Base(content) == Wrapper }

// ContentFor returns what the switch in a directory must contain for a backend: the name of the multi-call program if
// it is in that directory, otherwise its path in a standard one. It returns "" if there is none, or if calls run
// another program that is in the directory, for one command alone. The directory is not looked up by its path again,
// which may lead elsewhere by now.
func ContentFor(d *dir.Dir, mode evidence.Mode) string {
	multi := iptables.MultiCall(mode)
	if d.Executable(multi) {
		return multi
	}
	if d.Executable(iptables.Single(mode, "iptables")) {
		return ""
	}
	for _, directory := range iptables.Dirs() {
		path := directory + "/" + multi
		if unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// linkTo returns the content of a link in the directory that leads to a path: the bare name of a file in the directory,
// otherwise the path.
func linkTo(d *dir.Dir, path string) string {
	name := filepath.Base(path)
	here, err := d.ID(name)
	if err != nil || !here.IsAt(path) {
		return path
	}
	return name
}
