// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// enterNetns moves this thread into the network namespace that the flags name.
func enterNetns(c *cli.Context) error {
	path := c.String("netns")
	switch {
	case c.IsSet("netns") && c.IsSet("pid"):
		return usagef("detect", "--netns and --pid cannot be used together")
	case c.IsSet("pid"):
		pid, err := strconv.ParseUint(c.String("pid"), 10, 31)
		if err != nil || pid == 0 {
			return usagef("detect", "--pid %q is not a process ID such as 1", c.String("pid"))
		}
		path = fmt.Sprintf("/proc/%d/ns/net", pid)
	case path == "":
		return nil
	}
	err := setns(path)
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT) && c.IsSet("pid"):
		hint = "no process with that ID is visible here; a Pod sees the host's processes only with hostPID: true"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		hint = "this needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE for another user's process"
	}
	return failure{1, fmt.Errorf("detect: %w", err), hint}
}

// setns enters the network namespace that a file names: /run/netns/NAME as "ip netns add" makes it, or /proc/PID/ns/net.
func setns(path string) error {
	// Before open(2), because opening a device or a FIFO does something.
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return fmt.Errorf("find the network namespace %q: %w", path, err)
	}
	if fs.Type != unix.NSFS_MAGIC {
		return fmt.Errorf("%q is not a network namespace", path)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		// The kernel compares the kinds first. Its ioctl for that is not there for 32-bit programs on a 64-bit 6.1.
		err = unix.Setns(fd, unix.CLONE_NEWNET)
	}
	switch {
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%q is not a network namespace", path)
	case err != nil:
		return fmt.Errorf("enter the network namespace %q: %w", path, err)
	}
	return nil
}
