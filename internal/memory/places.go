// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

const dev = "/dev"

// Dirs returns the directories in which a user's memory can be, in this order: /dev is for root's alone, see unusable,
// and the others are usually writable where the container's root is not.
func Dirs(uid int) []string {
	dirs := []string{dev, "/dev/shm", "/run"}
	if uid != 0 {
		return dirs[1:]
	}
	return dirs
}

// unusable says why a user's memory in a directory is neither believed nor made; nil if it may be. In a directory that
// others can write and that is not sticky, anybody can put theirs in its place.
func (m *Memory) unusable(dir string, uid int) error {
	st, err := m.tree.Stat(dir)
	switch {
	case err != nil:
		return err
	case st.Uid != 0 && int(st.Uid) != m.uid:
		return errors.New("it belongs to another user")
	case tree.SharedWrite(st) && !tree.IsSticky(st):
		return errors.New("others can replace what is in it")
	case dir == dev && !m.ownDev(st):
		return errors.New("it is not the container's own")
	case dir != dev && uid == 0 && m.devTakesRoots():
		return errors.New("the container has a /dev of its own")
	}
	return nil
}

// ownDev reports whether /dev is the container's own: container runtimes mount a tmpfs there, whose ptmx is a
// symlink. In the host's, ptmx is a device.
func (m *Memory) ownDev(st unix.Stat_t) bool {
	return !tree.SharedWrite(st) && m.tree.IsLink(dev+"/ptmx")
}

// devTakesRoots reports whether root's memory is in /dev and nowhere else: what is in the other directories may be
// what root of another container of the pod has put there.
func (m *Memory) devTakesRoots() bool {
	return m.unusable(dev, 0) == nil && !m.tree.ReadOnly(dev)
}

// Unwritable says why no memory can be made, in any of the places for it; nil if there is one.
func (m Memory) Unwritable() error {
	if m.Mode() != "" {
		return nil
	}
	var all []error
	for _, dir := range Dirs(m.uid) {
		err := m.unusable(dir, m.uid)
		if err == nil {
			err = m.tree.Access(dir, unix.W_OK|unix.X_OK)
		}
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", dir, err))
	}
	return errors.Join(all...)
}
