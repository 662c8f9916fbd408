// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// debounce is how long Wait lets changes of nf_tables accumulate before it looks: a program that fills a table makes many.
const debounce = 20 * time.Millisecond

// Wait answers the query again and again until the answer is conclusive or ctx is done, and returns the last one. Any
// conclusive answer ends it: more rules in one backend than in the other as well as kubelet's chains. So does an Override,
// at once. A dry run is made only when ctx is done, for the guess.
//
// The error is nil if the answer is conclusive or set by Override. Else it is the one of ctx, or says why Wait cannot sleep
// (no descriptor is left for it), after one answer.
//
// It sleeps in between: nf_tables wakes it on every change, and legacy, which has no notifications, is polled every
// PollInterval. Without CAP_NET_ADMIN nf_tables is polled too. The caller must be locked to its thread if that has
// entered another namespace.
func (q Query) Wait(ctx context.Context) (Result, error) { return q.wait(ctx, Query.Run) }

func (q Query) wait(ctx context.Context, run func(Query) Result) (Result, error) {
	if q = q.sane(); q.Override != "" {
		return run(q), nil
	}
	changes := subscribe() // before the first question, so that no change is missed
	defer unix.Close(changes)
	cancelled, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		r := run(q)
		return r, unlessConclusive(r, fmt.Errorf("wait: %w", err))
	}
	written := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		unix.Write(cancelled, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		close(written)
	})
	defer func() {
		if !stop() {
			<-written
		}
		unix.Close(cancelled)
	}()
	look := q
	look.DryRun = q.DryRun && q.Everything // Everything wants its result, too
	for {
		r := run(look)
		if r.Conclusive {
			return r, nil
		}
		if sleep(changes, cancelled); ctx.Err() == nil {
			continue
		}
		// A dry run makes no answer conclusive, so once, for the guess, is enough.
		if look != q {
			r = run(q)
		}
		return r, unlessConclusive(r, ctx.Err())
	}
}

func unlessConclusive(r Result, err error) error {
	if r.Conclusive {
		return nil
	}
	return err
}

// subscribe returns a socket on which the kernel reports every change of nf_tables, or -1.
func subscribe() int {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return -1
	}
	if unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)}) != nil {
		unix.Close(fd)
		return -1
	}
	return fd
}

// sleep returns when changes were reported and it is quiet again, when the wait was cancelled, or after PollInterval.
func sleep(changes, cancelled int) {
	fds := []unix.PollFd{{Fd: int32(cancelled), Events: unix.POLLIN}, {Fd: int32(changes), Events: unix.POLLIN}}
	// A signal ends it early: then the next look comes early.
	if n, err := unix.Poll(fds, int(PollInterval.Milliseconds())); err != nil || n == 0 || fds[0].Revents != 0 {
		return
	}
	time.Sleep(debounce)
	var ignored [64]byte
	for {
		// What was lost for lack of space (ENOBUFS) was a change as well.
		if _, _, err := unix.Recvfrom(changes, ignored[:], unix.MSG_TRUNC); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
	}
}
