// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Container is what /proc says of the container that this process runs in.
type Container struct {
	// OwnNetns is yes if this thread is in the network namespace of process 1, and OwnRoot if they have the same root.
	// Both are Unknown where /proc or process 1 cannot be looked at: without /proc, with hostPID or
	// shareProcessNamespace, or if process 1 belongs to another user (ptrace access mode, see proc(5)).
	OwnNetns, OwnRoot detect.Answer

	// Netns is the inode of the network namespace, and Instance tells apart the lives of containers in it: the start time of
	// process 1 in clock ticks since boot, and the beginning of the boot ID. Both are "" if /proc does not tell. Two containers
	// that share a network namespace and were started within one tick look like one.
	Netns, Instance string
}

// Own reports whether the answers found here are about the container as a whole: process 1 is known to share our root and
// our network namespace, and it is known which life this is. Otherwise there may be a memory that cannot be read, and what was
// counted may be what its guess wrote. A CNI plugin that runs iptables in a pod's namespace is not such a place.
func (c Container) Own() bool {
	return c.OwnNetns == detect.Yes && c.OwnRoot == detect.Yes && c.Netns != ""
}

// ThisContainer looks at /proc.
func ThisContainer() Container {
	netns, err := tree.Tree{}.Stat("/proc/thread-self/ns/net")
	root, rootErr := tree.Tree{}.Stat("/")
	if errors.Join(err, rootErr) != nil {
		return Container{OwnNetns: detect.Unknown, OwnRoot: detect.Unknown}
	}
	c := Container{OwnNetns: same(netns, "/proc/1/ns/net"), OwnRoot: same(root, "/proc/1/root")}
	if c.Instance = instance(); c.Instance != "" {
		c.Netns = strconv.FormatUint(netns.Ino, 10)
	}
	return c
}

func same(st unix.Stat_t, path string) detect.Answer {
	other, err := tree.Tree{}.Stat(path)
	switch {
	case err != nil:
		return detect.Unknown
	case tree.IDOf(other) == tree.IDOf(st):
		return detect.Yes
	default:
		return detect.No
	}
}

// instance tells lives of containers apart. Where the boot ID is masked, as runtimes do it by /dev/null, the start time has to do;
// where it cannot be read for another reason, the next call may read it.
func instance() string {
	var buf [512]byte
	stat, _ := readFile("/proc/1/stat", buf[:])
	start := startTime(stat)
	boot, err := readFile("/proc/sys/kernel/random/boot_id", buf[256:])
	if start == "" || err != nil {
		return ""
	}
	return start + "." + string(boot[:min(8, len(boot))])
}

// startTime returns field 22 of /proc/PID/stat, see proc_pid_stat(5), "" if there is none. Field 2, the command in parentheses,
// may contain anything.
func startTime(stat []byte) string {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, start = 3, 22
	if len(fields) <= start-state {
		return ""
	}
	return string(fields[start-state])
}

// mapsAll reports whether the user namespace maps every user. Elsewhere, what belongs to nobody seems to belong to the overflow
// user. See user_namespaces(7): a line has the first ID inside, the first outside, and how many.
func mapsAll() bool {
	var buf [64]byte
	ids, _ := readFile("/proc/self/uid_map", buf[:])
	fields := bytes.Fields(ids)
	return len(fields) == 3 && string(fields[0]) == "0" && string(fields[2]) == "4294967295"
}

// readFile reads the beginning of a file of /proc. The runtime's poller would cost five more system calls.
func readFile(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	return buf[:max(n, 0)], err
}
