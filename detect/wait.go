//go:build linux

// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// PollInterval is how long Wait may overlook a change of legacy's tables, of which the kernel gives no sign.
const PollInterval = time.Second

// settle is how long Wait lets changes of nf_tables come together before it looks: a program that fills a table makes many.
const settle = 20 * time.Millisecond

// Wait answers the query until the answer is conclusive or ctx is done. TODO: ctx
func (q Query) Wait(ctx context.Context) (Result, error) {
	fd, signErr := listen() // before the first look, so that nothing comes between
	if signErr == nil {
		defer unix.Close(fd)
	}
	for {
		r := q.Run()
		if r.Conclusive || ctx.Err() != nil {
			return r, ctx.Err()
		}
		sleep(fd, PollInterval)
	}
}

// listen returns a socket on which the kernel tells of every change of nf_tables, or -1.
func listen() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return -1, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen to nf_tables: %w", err)
	}
	return fd, nil
}

// sleep returns when there was a sign and it is quiet again, or the time is over.
func sleep(fd int, limit time.Duration) {
	wait := func(limit time.Duration) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds())+1)
		// A signal of the runtime's own ends it early: then the look comes early.
		return err == nil && n > 0 || errors.Is(err, unix.EINTR)
	}
	if !wait(limit) {
		return
	}
	time.Sleep(settle)
	var ignored [64]byte
	for {
		// What was lost for want of room (ENOBUFS) was a sign all the same.
		if _, _, err := unix.Recvfrom(fd, ignored[:], unix.MSG_TRUNC); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
	}
}
