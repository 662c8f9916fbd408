// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

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
	return fmt.Sprintf("%d.%d.%s.%s", uid, netns, start, boot[:8])
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
