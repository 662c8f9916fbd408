// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"

	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// heldDir is a directory in which an administrator's command is at work: pinned, and locked unless another process
// keeps the lock.
type heldDir struct {
	Names         // in which the directory is pinned
	busy    error // why there is no lock, so that no link may be changed; the memory may
	release func()
}

// hold waits for the lock of a directory. It fails where there can be no lock at all.
func (n Names) hold(dir string) (heldDir, error) {
	n, unpin, err := n.Pin(dir)
	if err != nil {
		return heldDir{}, err
	}
	holds := false
	defer func() {
		if !holds { // also where a test ends this goroutine in the middle of it
			unpin()
		}
	}()
	if err := n.Tree.CheckLinks(dir); err != nil {
		return heldDir{}, err
	}
	unlock, err := n.Tree.Lock(dir)
	busy := errors.Is(err, tree.ErrBusy)
	if err != nil && !busy {
		return heldDir{}, err
	}
	holds = true
	if busy {
		return heldDir{Names: n, busy: err, release: unpin}, nil
	}
	release := func() {
		unlock()
		unpin()
	}
	return heldDir{Names: n, release: release}, nil
}
