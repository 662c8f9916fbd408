// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// isAgent says that a script has started this program under the name agent: an agent that enters Pods' network
// namespaces with its first thread, while its other threads stay.
var isAgent = filepath.Base(os.Args[0]) == "agent"

// What init locks is the first thread.
func init() {
	if isAgent {
		runtime.LockOSThread()
	}
}

// agent enters a network namespace, runs a program there, and returns its status.
func agent(namespace string, command []string) int {
	file, err := os.Open(namespace)
	if err == nil {
		err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return cmd.ProcessState.ExitCode()
}
