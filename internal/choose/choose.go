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

// OpenSwitched opens the directory whose switch select and reset change: that of the running file, otherwise the first
// standard one with a switch, because install puts a copy of the wrapper beside iptables, and PATH may find another
// copy. The error wraps link.ErrNotWrapped if there is no switch, and file.ErrExposed if others can write the running
// file's directory.
func OpenSwitched() (*link.Dir, error) {
	dirs := iptables.Dirs()
	running, err := os.Readlink(file.Running)
	if err == nil {
		dirs = slices.Insert(dirs, 0, filepath.Dir(running))
	}
	for i, dir := range dirs {
		_, err := os.Lstat(filepath.Join(dir, link.Switch))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		d, err := link.OpenTrusted(dir)
		isElsewhere := i > 0 // a place that others can write is passed over, as by exec.Find
		if isElsewhere && errors.Is(err, file.ErrExposed) {
			continue
		}
		return d, err
	}
	return nil, fmt.Errorf("no %s in %s: %w", link.Switch, strings.Join(slices.Compact(dirs), ", "), link.ErrNotWrapped)
}

// Select points the switch at a backend's program, whose path is absolute. If it returns nil, the commands in the
// directory run that backend. The error wraps link.ErrSingle if the program implements only one command,
// link.ErrNotWrapped as checkWrapped does, link.ErrForeign if another file has the switch's name, and the errno if a
// write fails (EROFS).
func Select(d *link.Dir, backend detect.Backend, program string) error {
	content, err := d.ContentFor(backend, program)
	if err != nil {
		return err
	}
	err = checkWrapped(d, false)
	if err != nil {
		return err
	}
	return point(d, content)
}

// Reset removes the record, whatever the switch is, and points the switch at the wrapper again. d is nil if there is no
// switch. If it returns nil, each command in the directory decides again: through the switch, or because it leads
// straight to the wrapper. The errors are those of Select and of Record.Remove.
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
	return cmp.Or(err, checkWrapped(d, true), recordErr)
}

// checkWrapped returns link.ErrNotWrapped if none of the six commands in the directory leads to the switch, or one that
// exists leads elsewhere. With isReset, each must lead to the wrapper, through the switch or not.
func checkWrapped(d *link.Dir, isReset bool) error {
	isWrapped := false
	for _, c := range look.In(d) {
		isLinked := d.IsAt(c.Switch)
		isRight := isLinked
		if isReset {
			isRight = c.Wrapper && c.Err == nil
		}
		if !isRight && !c.Missing {
			return fmt.Errorf("%q: %w", c.Path, link.ErrNotWrapped)
		}
		isWrapped = isWrapped || isLinked
	}
	if !isWrapped {
		return fmt.Errorf("%q: %w", d.Path, link.ErrNotWrapped)
	}
	return nil
}

// point changes the content of the switch.
func point(d *link.Dir, content string) error {
	_ = d.Lock(link.Patience) // without the lock, it continues: see link.Patience
	stored, err := d.Stored()
	if err != nil {
		return err
	}
	now, err := d.Readlink(link.Switch)
	if err != nil || now == content {
		return err
	}
	err = d.Replace(content, link.Switch)
	if err != nil && stored != "" {
		err = fmt.Errorf("%w (%w)", err, link.ErrStored)
	}
	return err
}
