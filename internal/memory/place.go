// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Directories for a memory, in this order. Dev is for root's alone, see usable. Both others are usually writable where the
// container's root is not.
const (
	dev = "/dev"
	shm = "/dev/shm"
	run = "/run"
)

// Dirs returns the directories in which a user's memory can be, in this order.
func Dirs(uid int) []string {
	if uid == 0 {
		return []string{dev, shm, run}
	}
	return []string{shm, run}
}

// at returns what a user's memory in a directory says.
func (m *Memory) at(dir string, uid int) (f found, ok bool) {
	f.path = programs.Join(dir, m.name(uid))
	st, err := m.tree.Lstat(f.path)
	if err != nil || !tree.IsLink(st) || int(st.Uid) != uid || uid == overflow && !mapsAll() || m.usable(dir) != nil {
		return found{}, false
	}
	target, err := m.tree.Readlink(f.path)
	if err != nil {
		return found{}, false
	}
	f.id = tree.IDOf(st)
	var maker int
	f.Memory, f.state, maker, ok = parse(target, m.life)
	f.target, f.Since, f.Pending = target, time.Unix(st.Mtim.Unix()), alive(maker)
	return f, ok
}

// alive reports whether there is another process of this ID. It need not be the one that had it, which only lets a guess hold for
// longer.
func alive(pid int) bool {
	return pid > 0 && pid != os.Getpid() && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// ownDev reports whether root's memory can be in /dev. Then it is nowhere else.
func (m *Memory) ownDev() bool { return m.usable(dev) == nil && !m.tree.ReadOnly(dev) }

// places are the directories in which this user's memory is made.
func (m *Memory) places() []string {
	if m.uid == 0 && m.ownDev() {
		return []string{dev}
	}
	return []string{shm, run}
}

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

// Unwritable says why no memory can be made, in any of the places for it; nil if there is one.
func (m Memory) Unwritable() error {
	var all []error
	for _, dir := range m.places() {
		err := m.usable(dir)
		if err == nil {
			err = m.tree.Access(dir, unix.W_OK|unix.X_OK)
		}
		if err == nil || m.Mode() != "" {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", dir, err))
	}
	return errors.Join(all...)
}

// Answer answers a query about the host. Whether anybody guessed matters only to a certain count, so that is looked up only then.
func (m Memory) Answer(q detect.Query) detect.Result {
	r := q.Run()
	if r.Reason == detect.RuleCount && r.Conclusive && q.Guessed == "" {
		if q.Guessed = m.Guessed(r.Mode); q.Guessed != "" {
			r = q.Run()
		}
	}
	return r
}

// Guessed returns where it shows that anybody in this network namespace, in this life of a container or an earlier one, chose a
// backend without certain evidence, "" if it does not: the rules of that backend may be of that making. "" stands for any backend.
func (m Memory) Guessed(mode detect.Mode) string {
	for _, path := range m.marks() {
		target, _ := m.tree.Readlink(path)
		if r, _, _, _ := parse(target, lifeOf(programs.Base(path))); mode == "" || r.Mode == mode {
			return path
		}
	}
	return ""
}

// marks lists the links of anybody, in this network namespace and boot, that are no certain answer. Each must belong to the user in its
// name.
func (m Memory) marks() (paths []string) {
	if m.life == "" {
		return nil
	}
	boot := m.life[strings.LastIndexByte(m.life, '.'):]
	for _, dir := range Dirs(0) {
		for _, name := range m.tree.List(dir) {
			uid, _, _ := strings.Cut(strings.TrimPrefix(name, self.WrapperName+"."), ".")
			life := lifeOf(name)
			if !strings.HasPrefix(name, self.WrapperName+".") || !strings.HasPrefix(life, m.netns+".") || !strings.HasSuffix(life, boot) {
				continue
			}
			path := programs.Join(dir, name)
			st, err := m.tree.Lstat(path)
			target, linkErr := m.tree.Readlink(path)
			if r, _, _, ok := parse(target, life); ok && !r.Conclusive && err == nil && linkErr == nil && strconv.Itoa(int(st.Uid)) == uid {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// lifeOf returns the life in the name of a memory.
func lifeOf(name string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(name, self.WrapperName+"."), ".")
	return rest
}
