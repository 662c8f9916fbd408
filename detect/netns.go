// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import "golang.org/x/sys/unix"

// InOwnNetns says whether this thread is in the network namespace of the container's first process, the one that a
// container is made for. A CNI plugin that runs iptables inside a pod's namespace is not: what holds there proves
// nothing about the host. Unknown where the two cannot be compared: without /proc, or where the first process is not
// ours to look at.
func InOwnNetns() Answer {
	var own, first unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &own) != nil || unix.Stat("/proc/1/ns/net", &first) != nil {
		return Unknown
	}
	return answer(own.Dev == first.Dev && own.Ino == first.Ino)
}
