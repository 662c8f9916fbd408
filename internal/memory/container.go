// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
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

	// Life is the one of the container in this thread's network namespace, Home the one in process 1's. They are not
	// known if /proc does not tell.
	Life, Home Life
}

// Own reports whether the answers found here are about the container as a whole: process 1 is known to share our root
// and our network namespace, and it is known which life this is. Otherwise there may be a memory that cannot be read,
// and what was counted may be what its guess wrote. A CNI plugin that runs iptables in a pod's namespace is not such
// a place.
func (c Container) Own() bool {
	return c.OwnNetns == detect.Yes && c.OwnRoot == detect.Yes && c.Life.Known()
}

// away reports whether this thread is known to be in another network namespace than the rest of its container.
func (c Container) away() bool {
	return c.OwnNetns == detect.No && c.OwnRoot == detect.Yes
}

// ThisContainer looks at /proc.
func ThisContainer() Container {
	netns, netnsErr := tree.Tree{}.Stat("/proc/thread-self/ns/net")
	root, rootErr := tree.Tree{}.Stat("/")
	if errors.Join(netnsErr, rootErr) != nil {
		return Container{OwnNetns: detect.Unknown, OwnRoot: detect.Unknown}
	}
	netns1, netns1Err := tree.Tree{}.Stat("/proc/1/ns/net")
	root1, root1Err := tree.Tree{}.Stat("/proc/1/root")
	c := Container{
		OwnNetns: same(netns, netns1, netns1Err),
		OwnRoot:  same(root, root1, root1Err),
		Life:     lifeIn(netns.Ino),
	}
	c.Home = c.Life
	if c.OwnNetns == detect.No {
		c.Home.Netns = strconv.FormatUint(netns1.Ino, 10)
	}
	return c
}

// same reports whether two files are one. The second one could not be looked at if there is an error.
func same(st, other unix.Stat_t, err error) detect.Answer {
	switch {
	case err != nil:
		return detect.Unknown
	case tree.IDOf(other) == tree.IDOf(st):
		return detect.Yes
	default:
		return detect.No
	}
}

// lifeIn tells lives of containers apart. Where the boot ID is masked, the start time has to do; where it cannot be
// read for another reason, the next call may read it.
func lifeIn(netns uint64) Life {
	_, start := stateAndStart("1")
	var buf [bootLength]byte
	boot, err := readProc("/proc/sys/kernel/random/boot_id", buf[:])
	if start == "" || err != nil {
		return Life{}
	}
	return Life{Netns: strconv.FormatUint(netns, 10), Start: start, Boot: string(boot)}
}
