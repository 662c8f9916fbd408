// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Reset makes the six names in a directory lead to a wrapper again and removes the container's memory, whose path it
// returns. Names that lead to a wrapper stay as they are. It fails where the names are somebody else's, see
// ErrNotInstalled and ErrForeign, and changes nothing then.
func (n Names) Reset(dir string) (forgotten string, err error) {
	held, err := n.hold(dir)
	if err != nil {
		return "", err
	}
	defer held.release()
	n = held.Names
	d := n.look(dir)
	if err := n.resettable(d); err != nil {
		return "", err
	}
	m := n.Memory()
	forgotten = m.Path()
	if forgotten != "" && forgotten != m.OwnPath() {
		return "", memory.ErrRoots
	}
	if !d.allToWrapper() { // something has to be repointed
		if held.busy != nil {
			return "", held.busy
		}
		err := n.adopt(d, func(e entry) bool { return !e.wrapper })
		if err != nil {
			n.putBack(d)
			return "", err
		}
	}
	if err := m.Forget(); err != nil {
		if held.busy == nil {
			n.putBack(d)
		}
		return "", err
	}
	if held.busy == nil {
		n.tidy(d)
	}
	return forgotten, nil
}

// resettable fails unless all six names are there, and may be repointed.
func (n Names) resettable(d directory) error {
	for _, e := range d.names {
		if !e.exists() && tree.IsNotExist(e.err) {
			return fmt.Errorf("%q does not exist: %w", e.path, unix.ENOENT)
		}
	}
	return n.repointable(d)
}
