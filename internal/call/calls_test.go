// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.MainOfPackage(m) }

// A first call has guessed, and before it records, another one guesses the other backend and does. Both run what is
// recorded. Here the test binary is the wrapper: init sees the command's name.
func TestFasterCall(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Needs(t, "strace")
	self, err := os.Executable()
	host.Check(t, err)
	host.Check(t, host.LayOut(self))
	slow := exec.Command("strace", "-qq", "-o", "/dev/null", "-e", "trace=symlinkat", "-e",
		"inject=symlinkat:delay_enter=3600s", "iptables", "-w", "-A", "INPUT", "-s", "192.0.2.1", "-j", "ACCEPT")
	host.Check(t, slow.Start())
	held := 0
	for tries := 0; held == 0; tries++ {
		if tries > 10000 {
			t.Fatal("the slow call makes no record")
		}
		time.Sleep(time.Millisecond)
		held = inCall(t, slow.Process.Pid, unix.SYS_SYMLINKAT)
	}
	host.Run(t, "iptables-legacy", "-A", "FORWARD", "-j", "ACCEPT")
	host.Run(t, "iptables", "-w", "-A", "INPUT", "-s", "192.0.2.2", "-j", "ACCEPT")
	host.Check(t, slow.Process.Kill()) // of strace: then the kernel lets the call go on
	_ = slow.Wait()
	var status unix.WaitStatus
	_, err = unix.Wait4(held, &status, 0, nil) // process 1 is the parent of those that have lost theirs
	if err != nil || status != 0 {
		t.Errorf("the slow call: %v, status %d", err, status)
	}
	if got := host.Run(t, "iptables-legacy", "-S", "INPUT"); strings.Count(got, "192.0.2.") != 2 {
		t.Errorf("legacy has %s", got)
	}
}

// inCall returns a child of a process that is in a system call, 0 if none is.
func inCall(t *testing.T, parent, call int) int {
	t.Helper()
	children := host.Read(t, fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
	for child := range strings.FieldsSeq(string(children)) {
		now, _ := os.ReadFile("/proc/" + child + "/syscall") // it may have ended
		if strings.HasPrefix(string(now), strconv.Itoa(call)+" ") {
			pid, err := strconv.Atoi(child)
			host.Check(t, err)
			return pid
		}
	}
	return 0
}
