// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread runs a function on a thread of its own, which ends with it. What the function changes of the thread, such as
// its user, its namespaces and its root, changes nothing else. It is never the process' first thread, which does not
// end before the process, and which is what /proc/PID shows.
func OnThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if unix.Gettid() == os.Getpid() {
			OnThread(do) // on another one, as this goroutine has this one
			runtime.UnlockOSThread()
			return
		}
		do()
	}()
	<-done
}
