// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"os"
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
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
// iptables-wrapper is the same file, as for a hard link and after a kill, or is missing. If it is missing, a switch
// that points to a program is left over from before the copy was made: then the copy is not adopted.
func (d *Dir) isCopy() bool {
	if !slices.Contains(iptables.Commands(), d.running) {
		return false
	}
	wrapper, err := d.Stat(Wrapper)
	if err == nil {
		return file.Same(wrapper, d.runningFile)
	}
	stored, unswitched := d.Stored()
	isOpen := stored == "" && (unswitched == nil || errors.Is(unswitched, os.ErrNotExist))
	return errors.Is(err, os.ErrNotExist) && isOpen
}

// adopt lays the switch for the running file, which is a copy: the binary was copied over /usr/sbin/iptables. First the
// file gets the name iptables-wrapper, so that it never loses its last name. Then those of the six names that lead to
// the file are linked to the switch. The error is errMoved if the running file is no longer a copy, as after another
// call has adopted it.
//
// The caller holds the lock.
func (d *Dir) adopt() error {
	st, err := d.Lstat(d.running)
	if err == nil && !(file.Same(st, d.runningFile) && d.isCopy()) {
		err = errMoved
	}
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(iptables.Commands(), func(name string) bool {
		st, err := d.Stat(name)
		return err != nil || !file.Same(st, d.runningFile)
	})
	_, err = d.Stat(Wrapper)
	if errors.Is(err, os.ErrNotExist) {
		err = d.Link(d.running, Wrapper)
	}
	if err != nil {
		return err
	}
	return d.Lay(names)
}

var errMoved = errors.New("the running file is no longer a copy")
