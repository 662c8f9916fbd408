// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"cmp"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// Memory is the container's memory of its backend: a symlink whose target is "nft" or "legacy". It holds where the switch
// cannot be replaced, and where the answer was a guess. Making a symlink is one atomic system call, so concurrent first
// calls agree by reading what won.
//
// A link owned by our effective user is believed, nothing else. What else stands under its name is passed over and left
// alone.
type Memory struct {
	tree Tree
	file string // its name, "" where there can be none
	uid  int

	path string      // where it is, "" if there is none
	mode detect.Mode // what it says
}

// memoryDirs are where a memory can be, in this order. /dev/shm is a tmpfs that is writable even where the container's root
// is read-only.
var memoryDirs = [...]string{"/dev/shm", "/run"}

// ErrNoMemory means that this process can have no memory: its container is not known, or it runs set-user-ID.
var ErrNoMemory = errors.New("no memory can be kept here")

// Memory reads the memory of the container.
func (w Wrapper) Memory(c Container) Memory {
	m := Memory{tree: w.Tree, uid: w.uid}
	if c.life != "" && w.Trusted() {
		m.file = WrapperName + "." + c.life
		m.read()
	}
	return m
}

// Mode returns the remembered backend, "" if there is none.
func (m Memory) Mode() detect.Mode { return m.mode }

func (m *Memory) read() {
	m.path, m.mode = "", ""
	if m.file == "" || m.tree.stop("read", m.file) != nil {
		return
	}
	for _, dir := range memoryDirs {
		path := programs.Join(dir, m.file)
		if mode := m.at(path); mode != "" {
			m.path, m.mode = path, mode
			return
		}
	}
}

// at returns what a memory at a path says, "" if there is none that can be believed.
func (m *Memory) at(path string) detect.Mode {
	st, err := m.tree.Lstat(path)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK || int(st.Uid) != m.uid {
		return ""
	}
	target, err := m.tree.Readlink(path)
	if mode := detect.Mode(target); err == nil && (mode == detect.NFT || mode == detect.Legacy) {
		return mode
	}
	return ""
}

// make remembers a mode, unless there is a memory already. Mode then returns what holds.
func (m *Memory) make(mode detect.Mode) error {
	if m.mode != "" {
		return nil
	}
	if m.file == "" {
		return ErrNoMemory
	}
	var first error
	for _, dir := range memoryDirs {
		path := programs.Join(dir, m.file)
		err := m.tree.Symlink(string(mode), path)
		if err == nil {
			m.path, m.mode = path, mode
			return nil
		}
		first = cmp.Or(first, err)
		if m.read(); m.mode != "" { // another call was faster
			return nil
		}
	}
	return first
}

// set remembers a mode, whatever the memory says now.
func (m *Memory) set(mode detect.Mode) error {
	if err := m.make(mode); err != nil || m.mode == mode {
		return err
	}
	if err := m.tree.replace(m.path, string(mode), ownTemporary(m.path)); err != nil {
		return err
	}
	m.mode = mode
	return nil
}

// forget removes the memory.
func (m *Memory) forget() error {
	for m.mode != "" {
		if err := m.tree.Unlink(m.path); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		m.read() // there may be another in the next directory
	}
	return nil
}
