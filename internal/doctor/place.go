// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// Place is where a client finds iptables.
type Place struct {
	Dir    string        // of the six commands; of the switch, if Client leads through one
	Client string        // the iptables that the question is about, "" if PATH finds none
	Names  []layout.Name // the six commands as a client finds them; none if there is no such directory
	Memory memory.Memory // what a call here would read and write
}

// At returns the place of a directory, which stays open, and without one that of the iptables in our own PATH: "kubectl
// exec" gives a process the PATH of the container. Where PATH finds none, it is the wrapper's default directory.
func At(directory string) Place {
	find := func(name string) string { return filepath.Join(directory, name) }
	if directory == "" {
		find = inPath
	}
	p := Place{Client: find("iptables")}
	p.Dir = cmp.Or(directory, filepath.Dir(p.Client))
	if p.Client == "" {
		p.Dir = cmp.Or(layout.DefaultDirectory(), iptables.Dirs()[0])
	}
	d, _, err := layout.OpenDirectory(p.Dir)
	if err != nil {
		p.Memory = memory.Find(nil)
		return p
	}
	p.Memory = memory.Find(d)
	p.Dir = d.Path()
	_, running := layout.Running()
	for _, name := range iptables.Commands() {
		p.Names = append(p.Names, layout.LookAt(cmp.Or(find(name), d.Join(name)), running))
	}
	return p
}

// inPath returns the path of a command as a shell finds it, "" if it does not.
func inPath(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// find finds the programs that a call would run: in the directory of the switch, then in the standard directories.
func (p Place) find(command string) layout.Programs {
	_, running := layout.Running()
	if !filepath.IsAbs(p.Dir) {
		return layout.FindPrograms(command, running)
	}
	return layout.FindPrograms(command, running, p.Dir)
}

// keeping says what keeps calls from remembering their decision here, "" if nothing does.
func (p Place) keeping() string {
	in := p.Memory.Dir
	switch {
	case os.Geteuid() != 0:
		return "only root can remember it"
	case !memory.OfContainer():
		return "process 1 is not this container's (hostPID), or cannot be inspected"
	case in == nil || in.Writable() != nil:
		return "neither /dev nor the directory of iptables is both the container's own and writable"
	}
	return ""
}
