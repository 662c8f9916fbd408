// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// ErrForeign means that something would have to be replaced that belongs neither to iptables nor to a wrapper.
var ErrForeign = errors.New("not replaced")

// Ours returns nil if what is at a path may be replaced: nothing, a wrapper, or a link to a wrapper or to one of
// iptables' programs, even if that has been removed.
func (n Names) Ours(path string) error {
	c, err := n.Tree.Follow(path)
	nothing := len(c.Hops) == 0
	itself := c.End == path
	switch {
	case nothing && errors.Is(err, unix.ENOENT), c.IsProgram(), n.toWrapper(c):
		return nil
	case nothing:
		return err
	case itself && c.Stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return tree.PathError("replace", path, unix.EISDIR)
	case tree.IsNotExist(err) && ledToUs(c):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %q is a broken link that no wrapper made: %w", ErrForeign, path, err)
	case itself:
		return fmt.Errorf("%w: %q is a file that is neither a wrapper nor a link to iptables", ErrForeign, path)
	default:
		return fmt.Errorf("%w: %q points to %q, which is neither a wrapper nor part of iptables",
			ErrForeign, path, c.End)
	}
}

// ledToUs reports whether a broken chain led to a wrapper or to a program of iptables, by the names on it.
func ledToUs(c tree.Chain) bool {
	last := programs.Base(c.End)
	return last == self.WrapperName || last == Switch || lastSwitch(c) != "" || programs.IsProgram(last)
}

// ErrNotInstalled means that the commands of a directory are somebody's iptables, in front of which nobody put a
// wrapper.
var ErrNotInstalled = errors.New("no wrapper is installed there")

// repointable fails unless the names of a directory may be repointed: one leads to a wrapper or goes through the
// switch, or there are none; nothing else is in the way; and the caller may do it.
func (n Names) repointable(d directory) error {
	if n.Self.Secure {
		return self.ErrPrivileged
	}
	present := "" // one of those that are there
	installed := false
	for _, e := range d.names {
		if err := n.Ours(e.path); err != nil {
			return err
		}
		if len(e.chain.Hops) == 0 {
			continue
		}
		present = e.path
		if e.switched || n.toWrapper(e.chain) {
			installed = true
		}
	}
	if present != "" && !installed {
		return fmt.Errorf("%w: %q is iptables' own", ErrNotInstalled, present)
	}
	return nil
}
