// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"path/filepath"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Name is where one of the six names leads.
type Name struct {
	Name       string
	ResolvesTo string        // a file, "" if the name is broken
	Mode       evidence.Mode // of the program of iptables that it resolves to, "" if it is none
	Wrapper    bool          // it resolves to a wrapper: the running file, or one called iptables-wrapper
	Switch     string        // the directory of the switch that it leads through, "" if there is none
	Missing    bool          // there is nothing of that name
	Err        error         // why it is broken
}

// Look returns where the six names in a directory lead. running is the running file.
func Look(d *dir.Dir, running dir.ID) []Name {
	var all []Name
	for _, name := range exec.Names() {
		all = append(all, look(d, name, running))
	}
	return all
}

func look(d *dir.Dir, name string, running dir.ID) Name {
	n := Name{Name: name}
	_, err := d.Lstat(name)
	if err != nil {
		n.Missing = true
		n.Err = err
		return n
	}
	n.Switch = SwitchDir(d.Join(name))
	n.ResolvesTo, n.Err = filepath.EvalSymlinks(d.Join(name))
	if n.Err != nil {
		return n
	}
	n.Wrapper = filepath.Base(n.ResolvesTo) == Wrapper || running.IsAt(n.ResolvesTo)
	if !n.Wrapper {
		n.Mode = iptables.ModeOf(filepath.Base(n.ResolvesTo))
	}
	return n
}
