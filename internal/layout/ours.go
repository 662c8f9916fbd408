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
	return n.ours(n.follow(path))
}

// ours is Ours for what has been followed.
func (n Names) ours(e entry) error {
	itself := e.chain.End == e.path // no link
	switch {
	case e.wrapper, e.chain.IsProgram():
		return nil
	case !e.exists() && errors.Is(e.err, unix.ENOENT):
		return nil
	case !e.exists(): // or that is not known
		return e.err
	case itself && tree.IsDir(e.chain.Stat):
		return tree.PathError("replace", e.path, unix.EISDIR)
	case tree.IsNotExist(e.err) && ledToUs(e.chain):
		return nil
	case e.err != nil:
		return fmt.Errorf("%w: %q is a broken link that no wrapper made: %w", ErrForeign, e.path, e.err)
	case itself:
		return fmt.Errorf("%w: %q is a file that is neither a wrapper nor a link to iptables", ErrForeign, e.path)
	default:
		return fmt.Errorf("%w: %q points to %q, which is neither a wrapper nor part of iptables",
			ErrForeign, e.path, e.chain.End)
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
		if err := n.ours(e); err != nil {
			return err
		}
		if e.exists() {
			present = e.path
		}
		if e.switched || e.wrapper {
			installed = true
		}
	}
	if present != "" && !installed {
		return fmt.Errorf("%w: %q is iptables' own", ErrNotInstalled, present)
	}
	return nil
}
