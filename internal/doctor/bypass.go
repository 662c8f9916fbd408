// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// bypass is a path in another standard directory that runs the backend which the host does not use: whoever calls
// iptables by that path bypasses the wrapper.
type bypass struct {
	path    string
	foreign bool // install replaces it only with --force
}

// lookForBypasses looks at the commands in the other standard directories. A directory with several names counts once.
func (r *Report) lookForBypasses(n layout.Names, dir string) (found []bypass) {
	if !r.Host.Conclusive {
		return nil
	}
	seen := []string{dir}
	for _, other := range programs.StandardDirs() {
		if slices.ContainsFunc(seen, func(d string) bool { return n.Tree.SameFile(d, other) }) {
			continue
		}
		seen = append(seen, other)
		for _, command := range n.Look(other) {
			path := programs.Join(other, command.Name)
			if r.backendOf(n, path, command) == otherMode(r.Host.Mode) {
				found = append(found, bypass{path, n.Ours(path) != nil})
			}
		}
	}
	return found
}

// backendOf is the backend that a command runs, "" if it runs the wrapper or is none of iptables' programs. A copy of
// one, or a script, has to say itself.
func (r *Report) backendOf(n layout.Names, path string, command layout.Status) detect.Mode {
	if command.Wrapper || command.Error != "" || command.Mode != "" {
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

// cover puts the wrapper in front of them, in each of their directories.
func cover(bypasses []bypass) string {
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
