// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"

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
func (m *Memory) make(mode detect.Mode) (made bool, err error) {
	if m.mode != "" {
		return false, nil
	}
	if m.file == "" {
		return false, ErrNoMemory
	}
	var first error
	for _, dir := range memoryDirs {
		path := programs.Join(dir, m.file)
		err := m.tree.Symlink(string(mode), path)
		if err == nil {
			m.path, m.mode = path, mode
			return true, nil
		}
		first = cmp.Or(first, err)
		if m.read(); m.mode != "" { // another call was faster
			return false, nil
		}
	}
	return false, first
}

// set remembers a mode, whatever the memory says now.
func (m *Memory) set(mode detect.Mode) error {
	if _, err := m.make(mode); err != nil || m.mode == mode {
		return err
	}
	if err := m.tree.replace(m.path, string(mode), ownTemporary(m.path)); err != nil {
		return err
	}
	m.mode = mode
	return nil
}

func (m *Memory) forget() error {
	for m.mode != "" {
		if err := m.tree.Unlink(m.path); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		m.read() // there may be another in the next directory
	}
	return nil
}

// Container is what /proc says of the container that this process runs in.
type Container struct {
	// OwnNetns is yes if this thread is in the network namespace of process 1, and OwnRoot if they have the same root.
	// Both are Unknown where /proc or process 1 cannot be looked at: without /proc, with hostPID or
	// shareProcessNamespace, or if process 1 belongs to another user (ptrace access mode, see proc(5)).
	OwnNetns, OwnRoot detect.Answer

	// life names one life of one container in one network namespace, for one user; "" if /proc does not tell.
	life string
}

// Own reports whether the answers found here are about the container as a whole: process 1 is known to share our root and
// our network namespace. A CNI plugin that runs iptables in a pod's namespace is not such a place.
func (c Container) Own() bool { return c.OwnNetns == detect.Yes && c.OwnRoot == detect.Yes }

// Container looks at /proc.
func (w Wrapper) Container() Container {
	if w.container != nil {
		return *w.container
	}
	netns, err := Tree{}.Stat("/proc/thread-self/ns/net")
	root, rootErr := Tree{}.Stat("/")
	if errors.Join(err, rootErr) != nil {
		return Container{OwnNetns: detect.Unknown, OwnRoot: detect.Unknown}
	}
	return Container{
		OwnNetns: same(netns, "/proc/1/ns/net"),
		OwnRoot:  same(root, "/proc/1/root"),
		life:     life(w.uid, netns.Ino),
	}
}

func same(st unix.Stat_t, path string) detect.Answer {
	other, err := Tree{}.Stat(path)
	switch {
	case err != nil:
		return detect.Unknown
	case idOf(other) == idOf(st):
		return detect.Yes
	default:
		return detect.No
	}
}

// life returns the effective user, the inode of the network namespace, the start time of process 1 in clock ticks since
// boot, and the beginning of the boot ID: no other namespace and no other life of a container has all four.
func life(uid int, netns uint64) string {
	var buf [512]byte
	stat, err := readFile("/proc/1/stat", buf[:])
	if err != nil {
		return ""
	}
	start, err := startTime(stat)
	if err != nil {
		return ""
	}
	boot, err := readFile("/proc/sys/kernel/random/boot_id", buf[256:])
	if err != nil || len(boot) < 8 {
		return ""
	}
	return strconv.Itoa(uid) + "." + strconv.FormatUint(netns, 10) + "." + start + "." + string(boot[:8])
}

// startTime returns field 22 of /proc/PID/stat, see proc_pid_stat(5). Field 2, the command in parentheses, may contain
// anything.
func startTime(stat []byte) (string, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, start = 3, 22
	if len(fields) <= start-state {
		return "", errors.New("/proc/1/stat is too short")
	}
	return string(fields[start-state]), nil
}

// readFile reads the beginning of a file of /proc without the runtime's poller, which would cost five more system calls.
func readFile(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}
