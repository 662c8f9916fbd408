// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// becomeWithoutNFTables becomes a program for which the kernel has no nf_tables: socket(2) refuses NETLINK_NETFILTER,
// as it does where the module is missing.
func becomeWithoutNFTables(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	err = host.Refuse(unix.SYS_SOCKET, unix.EPROTONOSUPPORT,
		host.Argument{Place: 0, Value: unix.AF_NETLINK}, host.Argument{Place: 2, Value: unix.NETLINK_NETFILTER})
	if err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}
