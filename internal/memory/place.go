// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"

	"golang.org/x/sys/unix"
)

// overflow is what files of unmapped users seem to belong to, unless somebody changed /proc/sys/kernel/overflowuid.
const overflow = 65534

// usable says why a memory in a directory is neither believed nor made. In one that others can write and that is not sticky,
// anybody can put theirs in its place. The /dev that a container runtime makes is the container's own: a tmpfs whose ptmx is a
// symlink. In the host's, ptmx is a device.
func (m *Memory) usable(dir string) error {
	const othersWrite = 0o022
	st, err := m.tree.Stat(dir)
	switch {
	case err != nil:
		return err
	case st.Uid != 0 && int(st.Uid) != m.uid, st.Mode&othersWrite != 0 && st.Mode&unix.S_ISVTX == 0:
		return errors.New("others can replace what is in it")
	case dir == dev && (st.Mode&othersWrite != 0 || !m.tree.IsLink("/dev/ptmx")):
		return errors.New("it is not the container's own")
	}
	return nil
}
