// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The runtime's poller takes two descriptors, and ends the process if there are none left: a call at its limit would
// end with a trace of Go's, and with status 2.
func TestNoPoller(t *testing.T) {
	host.NeedsRoot(t, "filter its system calls")
	host.OnThread(func() {
		host.ForbidCall(t, unix.SYS_EPOLL_CTL)
		_ = OwnContainer() // whatever the answer: the kernel ends the test if it adds a file to a poller
	})
}
