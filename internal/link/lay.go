// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Lay makes the switch, if there is none, and links some of the six names to it. A new switch points to the wrapper's
// file in the directory, which must exist. At every moment, each name leads to the same program as before, or to the
// wrapper.
//
// The caller holds the lock.
func (d *Dir) Lay(names []string) error {
	_, err := d.Stored()
	if errors.Is(err, os.ErrNotExist) {
		err = d.Symlink(Wrapper, Switch)
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

// isCopy reports whether the running file is a copy that can be adopted: it has one of the six names, and
// iptables-wrapper is missing, or is the same file. A hard link to iptables-wrapper is a copy in this sense.
func (d *Dir) isCopy() bool {
	if !slices.Contains(iptables.Commands(), d.Running) {
		return false
	}
	wrapper, err := d.ID(Wrapper)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	running, err := d.ID(d.Running)
	return err == nil && running == wrapper
}

// adopt lays the switch for the running file, which is a copy: the binary was copied over /usr/sbin/iptables. First the
// file gets the name iptables-wrapper, so that it never loses its last name. Then those of the six names that lead to
// the file are linked to the switch. Another call may have done this already.
//
// The caller holds the lock.
func (d *Dir) adopt() error {
	st, err := d.Lstat(d.Running)
	if err != nil || fileType(st) != unix.S_IFREG {
		return err
	}
	running := idOf(st)
	names := slices.DeleteFunc(iptables.Commands(), func(name string) bool {
		id, err := d.ID(name)
		return err != nil || id != running
	})
	wrapper, err := d.ID(Wrapper)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = d.Link(d.Running, Wrapper)
	case err == nil && wrapper != running:
		err = fmt.Errorf("%q is not the running file", d.Join(Wrapper))
	}
	if err != nil {
		return err
	}
	return d.Lay(names)
}
