// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The first thread of process 1 has ended, and others go on: what can be read of it is not taken for another
// network. Its mounts cannot be read.
func TestEndedThreadOfProcess1(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	self, err := os.Executable()
	host.Check(t, err)
	cmd := exec.Command(self)
	cmd.Env = []string{asks + "=leaderless", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Unshareflags: unix.CLONE_NEWNS,
	}
	got := strings.TrimSpace(host.Output(t, cmd))
	if got != "no such file or directory, false true" {
		t.Errorf("got %s", got)
	}
}

func init() {
	if os.Getenv(asks) != "" {
		runtime.LockOSThread() // so that leaderless is on the first thread
	}
}

// leaderless is process 1 of a container: it ends its first thread, and lets a child ask.
func leaderless() {
	self, err := os.Executable()
	err = errors.Join(err, unix.Mount("none", "/proc", "proc", 0, ""))
	if err != nil {
		fmt.Println(err)
	}
	go func() {
		for err == nil {
			_, err = os.Stat("/proc/1/task/1/net/dev")
			time.Sleep(time.Millisecond)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{asks + "=own"}
		output, _ := cmd.CombinedOutput()
		fmt.Printf("%v, %s", errors.Unwrap(err), output)
		os.Exit(0)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}
