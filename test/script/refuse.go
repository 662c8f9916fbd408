// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A script starts this program under the name refuse, to run another one whose system calls fail, as a container's
// seccomp profile makes them fail:
//
//	refuse socket=AF_INET6 EAFNOSUPPORT program args...
var isRefuse = filepath.Base(os.Args[0]) == "refuse"

var (
	systemCalls = map[string]uint32{
		"flock": unix.SYS_FLOCK, "pipe2": unix.SYS_PIPE2, "recvmsg": unix.SYS_RECVMSG, "socket": unix.SYS_SOCKET,
	}
	firstArguments = map[string]uint32{"AF_INET6": unix.AF_INET6, "AF_NETLINK": unix.AF_NETLINK}
)

// refuse returns only if it cannot run the program. The errno "SIGSYS" ends it.
func refuse(what, errno string, program []string) error {
	runtime.LockOSThread() // a filter is the thread's
	call, first, hasFirst := strings.Cut(what, "=")
	number, isKnown := systemCalls[call]
	if !isKnown {
		return fmt.Errorf("what is %q", call)
	}
	var arguments []host.Argument
	if hasFirst {
		arguments = append(arguments, host.Argument{Place: 0, Value: firstArguments[first]})
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return err
	}
	for e := unix.Errno(1); e < 4096; e++ {
		if unix.ErrnoName(e) == errno {
			err = host.Refuse(number, e, arguments...)
		}
	}
	if err != nil {
		return err
	}
	return unix.Exec(path, program, os.Environ())
}
