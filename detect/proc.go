// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

func exists(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil
}

// missing is not the opposite of exists: that a file cannot be examined proves nothing.
func missing(path string) bool {
	var stat unix.Stat_t
	return errors.Is(unix.Stat(path, &stat), unix.ENOENT)
}

// modulesCanLoad is false only where the kernel says for certain that nothing will be added to it.
func modulesCanLoad(proc string) bool {
	var disabled [1]byte
	switch _, err := readFile(proc+"/sys/kernel/modules_disabled", disabled[:]); {
	case err == nil:
		return disabled[0] != '1'
	case errors.Is(err, unix.ENOENT):
		// Built without modules; but where there is no /proc, the file is missing too.
		return !exists(proc + "/sys/kernel/osrelease")
	default:
		return true
	}
}

// readFile reads a file of /proc that fits, without the runtime's poller, which would cost five more system calls.
func readFile(path string, buf []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", path, err)
	}
	return n, nil
}
