// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// bypass is the path of a command that runs a backend's program without the wrapper or its switch.
type bypass struct {
	path    string
	backend detect.Mode
	beside  bool // it is in the same directory as the iptables that the report is about
	foreign bool // install replaces it only with --force
}

// lookForBypasses looks at the commands in this and the other standard directories.
func (r *Report) lookForBypasses(n layout.Names, dir string) (found []bypass) {
	for _, d := range n.AndStandardDirs(dir) {
		for _, command := range n.Look(d) {
			path := programs.Join(d, command.Name)
			if command.Wrapper || command.Error != "" || r.follows(n, path) {
				continue
			}
			backend := r.backendOf(n, path, command)
			viaSwitch := r.Here.How == here.Switch && r.Here.Backend == backend && isScript(n.Tree, path)
			if backend != "" && !viaSwitch { // a script may well run what goes through the switch
				found = append(found, bypass{
					path:    path,
					backend: backend,
					beside:  d == dir,
					foreign: n.Ours(path) != nil,
				})
			}
		}
	}
	return found
}

// follows reports whether a path goes through a switch that is not known to be wrong.
func (r *Report) follows(n layout.Names, path string) bool {
	chain, _ := n.Tree.Follow(path)
	switched := slices.ContainsFunc(chain.Hops, func(hop string) bool { return programs.Base(hop) == layout.Switch })
	return switched && !r.hostUses(otherMode(chain.Mode()))
}

// isScript reports whether a file begins with #!, see execve(2).
func isScript(t tree.Tree, path string) bool {
	file, err := t.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var begin [2]byte
	_, err = file.ReadAt(begin[:], 0)
	return err == nil && string(begin[:]) == "#!"
}

// hostUses reports whether the host is known to use a backend.
func (r *Report) hostUses(backend detect.Mode) bool {
	return r.Host.Conclusive && r.Host.Mode == backend
}

// wrongBypasses are those in other directories that run the backend which the host does not use.
func (r *Report) wrongBypasses() []bypass {
	return slices.DeleteFunc(slices.Clone(r.bypasses), func(b bypass) bool {
		return b.beside || !r.hostUses(otherMode(b.backend))
	})
}

// fixedBypasses are those that are right only as long as the host does not change its backend, while iptables here
// follows it.
func (r *Report) fixedBypasses() []bypass {
	if r.Here.How == here.NotWrapped || r.Here.How == here.Missing {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.bypasses), func(b bypass) bool {
		return r.hostUses(otherMode(b.backend))
	})
}

// backendOf is the backend that a command runs, "" if it is none of iptables' programs. A copy of one, or a script, has
// to say itself.
func (r *Report) backendOf(n layout.Names, path string, command layout.Status) detect.Mode {
	if command.Mode != "" {
		return command.Mode
	}
	says, err := r.ask(n.Tree, path)
	if err != nil {
		return ""
	}
	return says.backend
}

func paths(bypasses []bypass) string {
	var all []string
	for _, b := range bypasses {
		all = append(all, b.path)
	}
	return strings.Join(all, ", ")
}

// putInFront puts the wrapper in front of them. Where a backend has no program that works, install fails; with --force
// it replaces a copy that may be the image's only program of its backend.
func (r *Report) putInFront(bypasses []bypass) fixes {
	commands := installInEach(bypasses)
	return fixes{
		{r.unusable(), Image, bothModes + "; then put the wrapper in front of them too:" + commands},
		{always, Image, "put the wrapper in front of them too:" + commands},
	}
}

// installInEach has the commands that put the wrapper in front of them, in each of their directories.
func installInEach(bypasses []bypass) string {
	var dirs []string
	forced := map[string]bool{}
	for _, b := range bypasses {
		dir := programs.Dir(b.path)
		dirs = append(dirs, dir)
		forced[dir] = forced[dir] || b.foreign
	}
	commands := ""
	for _, dir := range unique(dirs) {
		commands += "\nRUN iptables-wrapper install --dir " + word(dir)
		if forced[dir] {
			commands += " --force"
		}
	}
	return commands
}
