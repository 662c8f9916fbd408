// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
)

// adopt lays the switch for a command that is the running file itself: the binary was copied over /usr/sbin/iptables,
// or /usr/sbin/iptables is a hard link or a symlink to it. The file gets the name iptables-wrapper beside the command,
// so that it does not lose its last name.
//
// The caller holds the lock of the directory.
func adopt(p Place) error {
	in := p.Dir
	names := leadingTo(in, p.Running)
	if len(names) == 0 {
		return errors.New("none of the six names is the running file") // it was called by another, as "exec -a" does
	}
	wrapper, err := in.ID(Wrapper)
	if os.IsNotExist(err) {
		err = in.Link(p.Command, Wrapper)
		wrapper = p.Running
	}
	if err != nil {
		return err
	}
	if wrapper != p.Running {
		return fmt.Errorf("%q is another file than the running one", in.Join(Wrapper))
	}
	return Lay(in, Wrapper, names)
}

// leadingTo returns those of the six names in a directory that lead to a file.
func leadingTo(d *dir.Dir, file dir.ID) []string {
	var names []string
	for _, name := range exec.Names() {
		id, err := d.ID(name)
		if err == nil && id == file {
			names = append(names, name)
		}
	}
	return names
}

// Lay makes the switch, if there is none yet, and makes some of the six names lead through it. The switch contains the
// wrapper: its name if it is in the directory, otherwise its path. At every moment, each name leads to what it led to,
// or to the wrapper.
//
// The caller holds the lock of the directory.
func Lay(d *dir.Dir, wrapper string, names []string) error {
	err := checkName(wrapper)
	if err != nil {
		return err
	}
	content, err := Content(d)
	if err == nil && content == "" {
		err = d.Symlink(wrapper, Switch)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		err := d.Replace(Switch, name)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkName checks that the switch may contain the path of a wrapper: the switch tells the wrapper by its name.
func checkName(wrapper string) error {
	if isWrapper(wrapper) {
		return nil
	}
	return fmt.Errorf("the wrapper's file %q must be called %s", wrapper, Wrapper)
}
