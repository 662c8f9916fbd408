// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package netlink

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Open opens a socket to the subsystems of nfnetlink.
func Open() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return -1, fmt.Errorf("open a netlink socket: %w", err)
	}
	return fd, nil
}

// Send sends messages to the kernel.
func Send(fd int, b []byte) error {
	err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// Receive reads the next datagram from the kernel into buf. It never waits: the kernel has queued the reply before Send
// returns, and the next part of a dump before Receive returns. EAGAIN means that there is no more.
func Receive(fd int, buf []byte) ([]byte, error) {
	for {
		n, from, err := unix.Recvfrom(fd, buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		sender, isNetlink := from.(*unix.SockaddrNetlink)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("receive: %w", err)
		case n > len(buf):
			return nil, ErrShort
		case isNetlink && sender.Pid == 0: // anything else is not from the kernel
			return buf[:n], nil
		}
	}
}
