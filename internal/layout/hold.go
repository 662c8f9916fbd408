// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"

	"golang.org/x/sys/unix"
)

// heldDir is a directory in which an administrator's command is at work: pinned and locked, as far as that can be had.
type heldDir struct {
	Names         // in which the directory is pinned
	busy    error // why there is no lock, so that no link may be changed; the memory may
	release func()
}

// hold waits for the lock of a directory. That it cannot be had is no error: another process may keep it, the kernel
// may refuse it, or this user may not open the directory, only look up names in it.
func (n Names) hold(dir string) (heldDir, error) {
	pinned, unpin, err := n.Pin(dir)
	if errors.Is(err, unix.EACCES) {
		without := heldDir{Names: n, busy: err, release: func() {}}
		return without, n.Tree.CheckLinks(dir)
	}
	if err != nil {
		return heldDir{}, err
	}
	holds := false
	defer func() {
		if !holds { // also where a test ends this goroutine in the middle of it
			unpin()
		}
	}()
	if err := pinned.Tree.CheckLinks(dir); err != nil {
		return heldDir{}, err
	}
	unlock, err := pinned.Tree.Lock(dir)
	holds = true
	if err != nil {
		return heldDir{Names: pinned, busy: err, release: unpin}, nil
	}
	release := func() {
		unlock()
		unpin()
	}
	return heldDir{Names: pinned, release: release}, nil
}
