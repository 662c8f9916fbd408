// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package choose changes what the commands run when the user asks for it: select and reset.
package choose

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
)

// Switched opens the directory whose switch select and reset change: that of the running file, otherwise the first
// standard one with a switch. If iptables is in /sbin, install has put the wrapper there, and PATH may find another
// copy. The error wraps link.ErrNotWrapped if there is no switch, and file.ErrExposed if others can write the
// directory.
func Switched() (*link.Dir, error) {
	dirs := iptables.Dirs()
	running, err := os.Readlink(file.Running)
	if err == nil {
		dirs = slices.Insert(dirs, 0, filepath.Dir(running))
	}
	for _, dir := range dirs {
		_, err := os.Lstat(filepath.Join(dir, link.Switch))
		if !errors.Is(err, os.ErrNotExist) {
			return link.OpenTrusted(dir)
		}
	}
	return nil, fmt.Errorf("no %s in %s: %w", link.Switch, strings.Join(slices.Compact(dirs), ", "), link.ErrNotWrapped)
}

// Select points the switch at a backend's program. If it returns nil, the commands in the directory run that backend.
// The error wraps link.ErrSingle if the program implements only one command, link.ErrNotWrapped if no name leads to the
// switch, or one that exists does not, ErrForeign if another file has the switch's name, and the errno if a write fails
// (EROFS).
func Select(d *link.Dir, backend detect.Backend, program string) error {
	content, err := d.ContentFor(backend, program)
	if err != nil {
		return err
	}
	for _, n := range look.In(d) {
		if !n.Missing && !d.IsAt(n.Switch) {
			return fmt.Errorf("%q: %w", n.Path, link.ErrNotWrapped)
		}
	}
	return point(d, content)
}

// Reset removes the record, whatever the switch is, and points the switch at the wrapper again. d is nil if there is no
// switch. If it returns nil, each command in the directory decides again. The errors are those of Select, for a command
// that leads neither through the switch nor to the wrapper, and of Record.Remove.
func Reset(record link.Record, d *link.Dir) error {
	recordErr := record.Remove()
	if d == nil {
		return link.ErrNotWrapped
	}
	_, err := d.Stat(link.Wrapper)
	if err != nil {
		return fmt.Errorf("%w: %w", link.ErrNotWrapped, err) // the commands would be broken
	}
	err = point(d, link.Wrapper)
	for _, n := range look.In(d) {
		if err == nil && !n.Missing && !n.Wrapper && !d.IsAt(n.Switch) {
			err = fmt.Errorf("%q: %w", n.Path, link.ErrNotWrapped)
		}
	}
	return cmp.Or(err, recordErr)
}

// point changes the content of the switch, if a name in the directory leads to it.
func point(d *link.Dir, content string) error {
	isLinked := func(n look.Command) bool { return d.IsAt(n.Switch) }
	if !slices.ContainsFunc(look.In(d), isLinked) {
		return fmt.Errorf("%q: %w", d.Path, link.ErrNotWrapped)
	}
	_ = d.Lock(link.Patience)
	_, err := d.Stored()
	if err != nil {
		return err
	}
	now, err := d.Readlink(link.Switch)
	if err != nil || now == content {
		return err
	}
	err = d.Replace(content, link.Switch)
	if err != nil && now != link.Wrapper {
		err = fmt.Errorf("%w (%w)", err, link.ErrStored)
	}
	return err
}
