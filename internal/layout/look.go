// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Name is where one of the six names leads.
type Name struct {
	Name string `json:"name"`
	Path string `json:"path"`

	ResolvesTo string        `json:"resolves_to,omitempty"` // a file, "" if the name is broken
	Mode       evidence.Mode `json:"backend,omitempty"`     // of the program of iptables there, "" if it is none
	Wrapper    bool          `json:"wrapper"`               // the running file, or one called iptables-wrapper
	// the directory of the switch on the way, "" if there is none
	Switch  string `json:"switch,omitempty"`
	Missing bool   `json:"-"` // there is nothing of that name
	Err     error  `json:"-"` // why it is broken
}

// Look returns where the six names in a directory lead. running is the running file.
func Look(d *dir.Dir, running dir.ID) []Name {
	var all []Name
	for _, name := range exec.Names() {
		all = append(all, LookAt(d.Join(name), running))
	}
	return all
}

// LookAt returns where a path leads, which is one of the six names in a directory.
func LookAt(path string, running dir.ID) Name {
	n := Name{Name: filepath.Base(path), Path: path}
	_, err := os.Lstat(path)
	if err != nil {
		n.Missing = true
		n.Err = err
		return n
	}
	n.Switch = SwitchDir(path)
	n.ResolvesTo, n.Err = filepath.EvalSymlinks(path)
	if n.Err != nil {
		return n
	}
	n.Wrapper = filepath.Base(n.ResolvesTo) == Wrapper || running.IsAt(n.ResolvesTo)
	if !n.Wrapper {
		n.Mode = iptables.ModeOf(filepath.Base(n.ResolvesTo))
	}
	return n
}
