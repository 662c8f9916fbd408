// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// Place is where a client finds iptables.
type Place struct {
	Dir    string        // the directory of the six commands, and of the switch if Client goes through one
	Client string        // the iptables that the question is about, "" if PATH finds none
	Names  []layout.Name // where the six names lead: in Dir, or where PATH finds them
	Memory memory.Memory // what a call here would read and write
	paths  []string      // of the names, as a client calls them
}

// At returns the place of a directory, which stays open, and without one that of the iptables in our own PATH: "kubectl
// exec" gives a process the PATH of the container. Where PATH finds none, it is the first standard directory that has
// one.
func At(directory string) Place {
	p := Place{Dir: directory}
	switch {
	case directory != "":
		p.Client = filepath.Join(directory, "iptables")
	default:
		p.Client = inPath("iptables")
		p.Dir = dirOf(p.Client)
	}
	d, err := dir.Open(p.Dir)
	if err != nil {
		p.Memory = memory.Find(nil)
		return p
	}
	p.Memory = memory.Find(d)
	_, running := layout.Running()
	p.Names = layout.Look(d, running)
	for i, name := range p.Names {
		p.paths = append(p.paths, filepath.Join(p.Dir, name.Name))
		found := inPath(name.Name)
		if directory == "" && found != "" {
			p.paths[i] = found
			p.Names[i] = lookAt(found, i, name)
		}
	}
	return p
}

// lookAt says where one of the six names in a directory of PATH leads.
func lookAt(path string, i int, otherwise layout.Name) layout.Name {
	d, err := dir.Open(filepath.Dir(path))
	if err != nil {
		return otherwise
	}
	defer d.Close()
	_, running := layout.Running()
	return layout.Look(d, running)[i]
}

// inPath returns the first executable file of a name in the absolute directories of PATH, "" if there is none.
func inPath(name string) string {
	for directory := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		path := filepath.Join(directory, name)
		if filepath.IsAbs(directory) && executable(path) {
			return path
		}
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// dirOf returns the directory of the switch that a client leads through, otherwise the client's own. Without a client,
// it is the first standard directory in which there is an iptables, or the first of all.
func dirOf(client string) string {
	if client != "" {
		return cmp.Or(layout.SwitchDir(client), filepath.Dir(client))
	}
	standard := iptables.Dirs()
	for _, directory := range standard {
		_, err := os.Lstat(directory + "/iptables")
		if err == nil {
			return directory
		}
	}
	return standard[0]
}

// olderThanContainer reports whether the switch is older than the container, or than its last start: a runtime makes
// the files of a container's own /dev then.
func (p Place) olderThanContainer() bool {
	var sw, ptmx unix.Stat_t
	noSwitch := unix.Lstat(filepath.Join(p.Dir, layout.Switch), &sw)
	noDev := unix.Lstat("/dev/ptmx", &ptmx)
	isHosts := ptmx.Mode&unix.S_IFMT != unix.S_IFLNK
	return noSwitch == nil && noDev == nil && !isHosts && sw.Ctim.Nano() < ptmx.Ctim.Nano()
}

// wrapperElsewhere is another standard directory in which iptables is the wrapper, "" if there is none.
func (p Place) wrapperElsewhere() string {
	_, running := layout.Running()
	for _, directory := range iptables.Dirs() {
		d, err := dir.Open(directory)
		if err != nil {
			continue
		}
		first := layout.Look(d, running)[0]
		d.Close()
		if directory != p.Dir && first.Wrapper {
			return directory
		}
	}
	return ""
}

// remembered is what this container remembers, as a call in this place would read it.
func (p Place) remembered() evidence.Decision { return p.Memory.Read() }

// keeping says what keeps calls from remembering their decision here, "" if nothing does.
func (p Place) keeping() string {
	in := p.Memory.Dir
	switch {
	case os.Geteuid() != 0:
		return "only root can remember it, and this is user " + userID()
	case !memory.OfContainer():
		return "process 1 is not this container's (hostPID), or cannot be inspected"
	case in == nil || in.Writable() != nil:
		return "neither /dev nor the directory of iptables is the container's own and can be written"
	}
	return ""
}
