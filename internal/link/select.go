// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// ErrNotWrapped means that the six names, or one that exists, do not lead to a switch.
var ErrNotWrapped = errors.New("the commands of iptables do not run the wrapper")

// ErrRecord means that the switch was reset, and the record of this network namespace could not be removed.
var ErrRecord = errors.New("calls still follow the record")

// ErrStraight means that the six names are links straight to the wrapper, as an agent needs that enters Pods.
var ErrStraight = errors.New("the commands run the wrapper without a switch, so each call asks, and nothing is stored")

// Patience is how long a command that an administrator runs waits for the lock. After that it continues without the
// lock: no call holds it that long, but any user can.
const Patience = 2 * time.Second

// Switched opens the directory whose switch select and reset change: DIR if it has a switch, otherwise the first
// standard one that has: where iptables is in /sbin, install has put the wrapper there, and PATH may find another file
// of it. The error wraps ErrNotWrapped or ErrStraight if there is no switch, and file.ErrExposed if others can change
// the directory.
func Switched() (*Dir, error) {
	d, err := Here()
	switch {
	case err == nil && d.hasSwitch():
		return d, nil
	case err == nil:
		d.Close()
	case !errors.Is(err, ErrNoProc) && !errors.Is(err, ErrElsewhere):
		return nil, err
	}
	missing := ErrNotWrapped
	for _, path := range iptables.Dirs() {
		d, err := Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer d.Close()
		if d.hasSwitch() {
			return openSafe(path)
		}
		if slices.ContainsFunc(Look(d), func(n Name) bool { return n.Wrapper }) {
			missing = ErrStraight
		}
	}
	return nil, fmt.Errorf("no %s in %s: %w", Switch, strings.Join(iptables.Dirs(), ", "), missing)
}

func (d *Dir) hasSwitch() bool {
	_, err := d.Lstat(Switch)
	return err == nil
}

// Select points the switch at a backend's program. If it returns nil, the names in the directory run that backend.
//
// The error wraps ErrSingle if the program cannot be in the switch, ErrNotWrapped if none of the six names leads to the
// switch, or one that exists does not, ErrForeign if the switch is something else, and the errno of what could not be
// written, such as EROFS.
func (d *Dir) Select(backend detect.Backend, program string) error {
	content, err := d.contentFor(backend, program)
	if err != nil {
		return err
	}
	for _, n := range Look(d) {
		if !n.Missing && !d.LeadsToSwitch(n) {
			return fmt.Errorf("%q does not lead to the switch: %w", n.Path, ErrNotWrapped)
		}
	}
	return d.point(content)
}

// Reset removes the record, and points the switch at the wrapper again. The record is removed first, even if the switch
// cannot be changed; d is nil if there is no switch. The errors are those of Select and of Record.Remove.
func Reset(record Record, d *Dir) error {
	removed := record.Remove()
	if d == nil {
		return ErrNotWrapped
	}
	_, err := d.Stat(Wrapper) // otherwise the names would be broken
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("no %q: %w", d.Join(Wrapper), ErrNotWrapped)
	}
	if err == nil {
		err = d.point(Wrapper)
	}
	if removed != nil {
		removed = fmt.Errorf("%w: %w", ErrRecord, removed)
	}
	return cmp.Or(err, removed)
}

// point gives the switch a content, if a name in the directory leads to the switch.
func (d *Dir) point(content string) error {
	if !slices.ContainsFunc(Look(d), d.LeadsToSwitch) {
		return fmt.Errorf("%q: %w", d.path, ErrNotWrapped)
	}
	_ = d.Lock(Patience)
	_, err := d.Stored()
	if err != nil {
		return err
	}
	now, err := d.Readlink(Switch)
	if err != nil || now == content {
		return err
	}
	return d.Replace(content, Switch)
}
