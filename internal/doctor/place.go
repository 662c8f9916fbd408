// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	wrapped "github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
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
		p.Dir = cmp.Or(layout.DefaultDirectory(), layout.StandardDirs()[0])
	}
	d, _, err := layout.OpenDirectory(p.Dir)
	if err != nil {
		p.Memory = memory.Find(nil)
		return p
	}
	p.Memory = memory.Find(d)
	p.Dir = d.Path()
	_, running := layout.Running()
	for _, name := range wrapped.Names() {
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

// find finds the program that a call would run: beside the command, then in the standard directories.
func (p Place) find(mode evidence.Mode, command string) (string, error) {
	if !filepath.IsAbs(p.Dir) {
		return wrapped.Find(mode, command)
	}
	return wrapped.Find(mode, command, p.Dir)
}

// installed is the only backend whose programs are installed, "" if both or neither are.
func (p Place) installed() evidence.Mode {
	has := func(mode evidence.Mode) bool {
		_, err := p.find(mode, "iptables")
		return !errors.Is(err, wrapped.ErrMissing)
	}
	switch nft, legacy := has(evidence.NFT), has(evidence.Legacy); {
	case nft == legacy:
		return ""
	case nft:
		return evidence.NFT
	}
	return evidence.Legacy
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
		return "neither /dev nor the directory of iptables is the container's own and can be written"
	}
	return ""
}
