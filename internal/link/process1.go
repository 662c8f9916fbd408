// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// OwnContainer reports whether this process is known to have the mounts and the network namespace of process 1. Only
// then does an answer apply to the whole container: not for an agent that has entered a Pod's network namespace, not in
// a chroot in which an image is built, and not if process 1 is the host's. Root in a container often may not trace
// process 1, which reading /proc/1/root and /proc/1/ns would require. The files compared here do not.
func OwnContainer() bool {
	const limit = 16 << 20 // some 100,000 mounts
	first, err := file.Read("/proc/1/mountinfo", limit)
	if err != nil {
		return false
	}
	// The paths in mountinfo are relative to the root of the process, so they differ in a chroot.
	own, err := file.Read("/proc/self/mountinfo", limit)
	return err == nil && len(own) < limit && bytes.Equal(first, own) && OwnNetwork()
}

// OwnNetwork reports whether this process is known to be in the network namespace of every thread of process 1: one
// thread of an agent may have entered a Pod's namespace.
func OwnNetwork() bool {
	var own, its unix.Stat_t
	err := unix.Stat("/proc/self/net/dev", &own)
	if err != nil {
		return false
	}
	threads, err := file.Names("/proc/1/task")
	if err != nil {
		return false
	}
	same := false
	for _, thread := range threads {
		err := unix.Stat("/proc/1/task/"+thread+"/net/dev", &its)
		switch {
		case errors.Is(err, unix.ENOENT): // the thread has ended
		case err != nil || its.Ino != own.Ino:
			return false
		default:
			same = true
		}
	}
	return same
}
